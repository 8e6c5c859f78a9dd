"""Warm-ups that fail: requests, writes of the gate, pods that end meanwhile."""

from __future__ import annotations

import pytest

from headroom.errors import Conflict, Forbidden, Unavailable
from support.controller_world import World, play
from support.pods_world import WARMUP_S
from support.warmup_world import COURSE_S, REQUEST, RUNTIME, create, said, warmup_of, writes


@pytest.mark.parametrize(
    ("refusal", "reason", "remedy"),
    [
        ((400, "no such\ninput"), "RequestRefused", "(no such input): correct warmup.request"),
        ((503, ""), "RequestFailed", "answered 503: see the pod's log"),
        ((302, ""), "RequestFailed", "answered 302"),
    ],
)
def test_failing_warmup_request_names_the_remedy(
    refusal: tuple[int, str], reason: str, remedy: str
) -> None:
    async def scenario(world: World) -> None:
        world.servers.refusal = refusal
        create(world)
        await world.run_for(WARMUP_S + 20.0)
        assert said(world) == [("False", reason)]
        assert remedy in world.message("Ready")
        await world.run_for(60.0)
        assert said(world) == [("False", "TimedOut")]
        assert world.condition("Ready") == ("False", "ReplicasBroken")
        assert remedy in world.message("CapacityAvailable")
        assert any(remedy in one["note"] for one in world.cluster.events("ReplicasBroken"))
        world.servers.refusal = None
        corrected = REQUEST | {"path": "/predict"}
        world.edit(runtime=RUNTIME, warmup=warmup_of(world) | {"request": corrected})
        await world.run_for(15.0)
        assert said(world) == [("True", "Warm")]

    play(scenario)


def test_unexpected_error_counts_as_failure_and_the_timeout_passes() -> None:
    async def scenario(world: World) -> None:
        world.servers.error = OverflowError("cannot convert float infinity to integer")
        create(world)
        await world.run_for(WARMUP_S + 20.0)
        assert said(world) == [("False", "RequestFailed")]
        assert "OverflowError: see the operator's log" in world.message("Ready")
        await world.run_for(60.0)
        assert said(world) == [("False", "TimedOut")]
        world.servers.error = None
        await world.run_for(200.0)  # cold answers after the timeout are 30 s apart
        assert said(world) == [("True", "Warm")]

    play(scenario)


def test_silent_or_slow_server_is_named() -> None:
    async def scenario(world: World) -> None:
        world.servers.warm_s = 0.4
        create(world)
        await world.run_for(WARMUP_S + 15.0)
        assert said(world) == [("False", "TooSlow")]
        assert "the last in 400 ms (warmup.maxLatency 250 ms)" in world.message("Ready")
        world.servers.silent = True
        await world.run_for(90.0)
        assert said(world) == [("False", "TimedOut")]
        assert writes(world) < 20
        world.servers.silent, world.servers.warm_s = False, 0.1
        await world.run_for(75.0)
        assert said(world) == [("True", "Warm")]

    play(scenario)


@pytest.mark.parametrize("error", [Conflict("modified"), Forbidden("pods/status is forbidden")])
def test_rejected_gate_write_is_repeated_without_requests(
    error: Conflict | Forbidden,
) -> None:
    async def scenario(world: World) -> None:
        create(world)
        world.cluster.fail("apply_status", "Pod", error, times=3)
        await world.run_for(60.0)
        assert said(world) == [("True", "Warm")]
        (bodies,) = world.servers.asked.values()
        assert len(bodies) == 7

    play(scenario)


def test_gate_write_waits_as_long_as_the_api_server_requests() -> None:
    async def scenario(world: World) -> None:
        create(world)
        world.cluster.fail(
            "apply_status", "Pod", Unavailable("too many requests", retry_after_s=50.0), times=1
        )
        await world.run_for(WARMUP_S + COURSE_S + 35.0)
        assert said(world) == [("", "")]
        await world.run_for(30.0)
        assert said(world) == [("True", "Warm")]

    play(scenario)


def test_pod_deleted_during_warmup_leaves_no_task() -> None:
    async def scenario(world: World) -> None:
        create(world, scaling={"minReplicas": 3})
        await world.run_for(WARMUP_S + 3.0)
        world.edit(runtime=RUNTIME, warmup=warmup_of(world), scaling={"minReplicas": 1})
        world.cluster.delete("InferenceService", "resnet")
        await world.run_for(5.0)
        sent = len(world.servers.urls)
        await world.run_for(30.0)
        assert len(world.servers.urls) == sent

    play(scenario)
