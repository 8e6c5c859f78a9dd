"""Pods that the operator warms: nothing takes requests cold, whatever happens on the way."""

from __future__ import annotations

import pytest

from support.controller_world import REPLICA_RPS, World, play
from support.pods_world import WARMUP_S
from support.warmup_world import (
    COURSE_S,
    GATE,
    REQUEST,
    RUNTIME,
    create,
    create_target,
    said,
    warmup_of,
    writes,
)


def test_new_pod_is_ready_once_it_answers_fast() -> None:
    async def scenario(world: World) -> None:
        create(world)
        await world.run_for(WARMUP_S + 3.0)
        assert not world.pods.ready("resnet")
        assert world.condition("Ready") == ("False", "WarmingUp")
        assert "headroom.dev/warm" in world.message("Ready")
        await world.run_for(COURSE_S + 2.0)
        assert len(world.pods.ready("resnet")) == 1
        assert said(world) == [("True", "Warm")]
        assert world.condition("Ready") == ("True", "Serving")
        (bodies,) = world.servers.asked.values()
        assert bodies == [REQUEST["body"]] * 7
        assert set(world.servers.urls) == {"http://10.0.0.1:8000/inference"}
        sent = len(world.servers.urls), writes(world)
        await world.run_for(120.0)
        assert (len(world.servers.urls), writes(world)) == sent
        assert sent[1] <= 2

    play(scenario)


def test_warmup_time_is_part_of_the_cold_start() -> None:
    async def scenario(world: World) -> None:
        create(world)
        await world.run_for(30.0)
        world.edit(runtime=RUNTIME, warmup=warmup_of(world), scaling={"minReplicas": 2})
        await world.run_for(120.0)
        cold_start_s = float(world.status()["coldStart"]["p90"].removesuffix("s"))
        assert WARMUP_S + COURSE_S <= cold_start_s <= WARMUP_S + COURSE_S + 3.0

    play(scenario)


def test_template_has_gate_and_label_only_with_operator_warmup() -> None:
    async def scenario(world: World) -> None:
        create(world)
        world.create("other")
        await world.run_for(5.0)
        gated, other = (world.cluster.find("Deployment", name) for name in ("resnet", "other"))
        assert gated is not None
        assert other is not None
        template = gated["spec"]["template"]
        assert template["spec"]["readinessGates"] == [{"conditionType": GATE}]
        assert template["metadata"]["labels"]["headroom.dev/warmed-for"] == "resnet"
        assert "readinessGates" not in other["spec"]["template"]["spec"]

    play(scenario)


def test_many_pods_are_warmed_concurrently() -> None:
    async def scenario(world: World) -> None:
        create(world, scaling={"minReplicas": 8})
        await world.run_for(WARMUP_S + COURSE_S + 5.0)
        assert len(world.pods.ready("resnet")) == 8
        assert world.servers.most_at_once == 8

    play(scenario)


def test_restarted_container_is_warmed_again() -> None:
    async def scenario(world: World) -> None:
        create(world)
        await world.run_for(30.0)
        (pod,) = world.pods.ready("resnet")
        world.pods.restart(pod)
        await world.run_for(3.0)
        assert said(world) == [("False", "ContainerRestarted")]
        await world.run_for(WARMUP_S)
        assert not world.pods.ready("resnet")
        await world.run_for(COURSE_S + 3.0)
        assert said(world) == [("True", "Warm")]
        assert [len(bodies) for bodies in world.servers.asked.values()] == [7, 7]

    play(scenario)


def test_pod_of_an_earlier_template_keeps_its_gate_and_port() -> None:
    proxy = {"name": "proxy", "image": "proxy:1", "ports": [{"containerPort": 15000}]}
    runtime = RUNTIME | {"podTemplate": {"spec": {"containers": [proxy]}}}

    async def scenario(world: World) -> None:
        create(world, runtime=runtime)
        await world.run_for(30.0)
        warmup = warmup_of(world)
        sent = len(world.servers.urls), writes(world)
        world.edit(runtime=runtime | {"port": 9000}, warmup=warmup)
        await world.run_for(30.0)
        assert said(world) == [("True", "Warm")]
        assert (len(world.servers.urls), writes(world)) == sent
        world.pods.restart(world.pods.of("resnet")[0])
        await world.run_for(WARMUP_S + COURSE_S + 5.0)
        assert said(world) == [("True", "Warm")]
        assert set(world.servers.urls) == {"http://10.0.0.1:8000/inference"}
        world.edit(runtime=runtime | {"port": 9000}, warmup=warmup, scaling={"minReplicas": 2})
        await world.run_for(WARMUP_S + COURSE_S + 5.0)
        assert said(world) == [("True", "Warm")] * 2
        assert world.servers.urls[-1] == "http://10.0.0.2:9000/inference"

    play(scenario)


@pytest.mark.parametrize("failures", [0, 2])
def test_pod_event_is_processed_before_the_next_tick(failures: int) -> None:
    async def scenario(world: World) -> None:
        world.pod_events.failures = failures
        create(world)
        await world.run_for(30.0)
        for _ in range(5):  # at some moment between two ticks each
            (pod,) = world.pods.ready("resnet")
            world.pods.restart(pod)
            world.pods.follow()
            world.pod_events.tell("MODIFIED", pod)
            await world.run_for(0.1)
            assert said(world) == [("False", "ContainerRestarted")]
            await world.run_for(WARMUP_S + COURSE_S + 3.3)

    play(scenario)


def test_events_of_other_pods_are_ignored() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        ticks = len(world.recorder.outcomes)
        for labels in ({}, {"headroom.dev/warmed-for": "nobody"}):
            pod = {"metadata": {"namespace": "default", "name": "p", "labels": labels}}
            world.pod_events.tell("DELETED", pod)
        await world.run_for(0.1)
        assert len(world.recorder.outcomes) - ticks <= 1

    play(scenario)


def test_container_restarted_without_operator_is_warmed_while_serving() -> None:
    async def scenario(world: World) -> None:
        create(world)
        await world.run_for(30.0)
        (pod,) = world.pods.ready("resnet")
        await world.__aexit__()
        world.pods.restart(pod)
        world.pods.follow()
        await world.run_for_without_operator(WARMUP_S + 5.0)
        world.pods.follow()
        assert world.pods.ready("resnet")
        await world.__aenter__()
        for _ in range(40):
            await world.run_for(0.5)
            assert world.pods.ready("resnet"), "what takes requests is not taken away"
        assert [len(bodies) for bodies in world.servers.asked.values()] == [7, 7]

    play(scenario)


def test_restarted_operator_finishes_the_warmup() -> None:
    async def scenario(world: World) -> None:
        create(world)
        await world.run_for(30.0)
        asked = len(world.servers.urls)
        world.edit(runtime=RUNTIME, warmup=warmup_of(world), scaling={"minReplicas": 2})
        await world.run_for(WARMUP_S + 4.0)
        assert said(world)[1][0] != "True"
        await world.restart_operator()
        await world.run_for(COURSE_S + 4.0)
        assert said(world) == [("True", "Warm")] * 2
        first, second = (len(bodies) for bodies in world.servers.asked.values())
        assert first == asked
        assert second <= 7 + 3

    play(scenario)


def test_warm_pods_stay_ready_without_operator() -> None:
    async def scenario(world: World) -> None:
        create(world)
        await world.run_for(30.0)
        await world.__aexit__()
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment is not None
        world.cluster.write_replicas(deployment, 2, "kubectl")
        for _ in range(60):
            await world.run_for_without_operator(1.0)
            world.pods.follow()
        assert len(world.pods.ready("resnet")) == 1
        assert said(world) == [("True", "Warm"), ("", "")]

    play(scenario)


def test_target_with_gate_is_warmed() -> None:
    async def scenario(world: World) -> None:
        create_target(world, gated=True)
        await world.run_for(WARMUP_S + COURSE_S + 6.0)
        assert said(world, "own") == [("True", "Warm")]
        kinds = {("apply_status", "InferenceService"), ("apply_status", "Pod"), ("create", "Event")}
        assert set(world.cluster.writes()) <= kinds

    play(scenario)


def test_target_without_gate_is_reported_with_the_remedy() -> None:
    async def scenario(world: World) -> None:
        create_target(world, gated=False)
        await world.run_for(WARMUP_S + 6.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert "lack the readiness gate headroom.dev/warm" in world.message("Ready")
        assert not world.servers.urls

    play(scenario)


def test_unneeded_gate_is_opened() -> None:
    async def scenario(world: World) -> None:
        create_target(world, gated=True)
        service = world.cluster.find("InferenceService", "resnet")
        assert service is not None
        world.cluster.update(service, lambda one: one["spec"].update(warmup={}))
        await world.run_for(WARMUP_S + 4.0)
        assert said(world, "own") == [("True", "WarmedByServer")]
        assert not world.servers.urls

    play(scenario)


def test_pod_on_the_host_network_gets_no_request() -> None:
    async def scenario(world: World) -> None:
        create(world, runtime=RUNTIME | {"podTemplate": {"spec": {"hostNetwork": True}}})
        await world.run_for(WARMUP_S + 20.0)
        assert said(world) == [("False", "HostNetwork")]
        assert not world.servers.urls

    play(scenario)


def test_foreign_pods_get_no_request() -> None:
    async def scenario(world: World) -> None:
        world.create_workload("stranger", replicas=1)
        create(world, scaling={"minReplicas": 2})
        await world.run_for(5.0)
        (stranger,) = world.pods.of("stranger")
        worn = {"headroom.dev/inference-service": "resnet", "headroom.dev/warmed-for": "resnet"}
        gates = {"readinessGates": [{"conditionType": GATE}], "containers": [{"name": "x"}]}
        world.cluster.update(stranger, lambda one: one["metadata"].update(labels=worn))
        world.cluster.update(stranger, lambda one: one.update(spec=gates))
        await world.run_for(60.0)
        strangers = f"http://{stranger['status']['podIP']}:8000/inference"
        assert world.servers.urls
        assert strangers not in world.servers.urls

    play(scenario)


def test_warmup_requests_are_no_load() -> None:
    async def scenario(world: World) -> None:
        create(world, warmup={"requests": 200})
        await world.run_for(WARMUP_S + 30.0)
        assert len(world.pods.ready("resnet")) == 1
        world.edit(
            runtime=RUNTIME,
            warmup=warmup_of(world) | {"requests": 300},
            scaling={"minReplicas": 2},
        )
        for _ in range(60):
            await world.run_for(2.0)
            assert world.status()["signals"].get("arrivalsPerSecond", 0.0) == 0.0
        assert len(world.pods.ready("resnet")) == world.replicas() == 2
        assert len(world.servers.urls) == 500

    play(scenario)


def test_added_replicas_are_warm_when_ready() -> None:
    async def scenario(world: World) -> None:
        create(world)
        await world.run_for(40.0)
        world.pods.arrivals_rps["resnet"] = 3 * REPLICA_RPS
        await world.run_for(90.0)
        assert len(world.pods.ready("resnet")) >= 3
        assert set(said(world)) == {("True", "Warm")}

    play(scenario)
