"""Missing signals and starts of the operator: the replica count is kept."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.report.conditions.metrics_conditions import samples_of
from headroom.scaling.values.signals import Freshness, Signal, Signals
from support.controller_world import REPLICA_RPS, World, play


def test_silent_pods_keep_the_replicas() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        standing = world.replicas()
        world.pods.silent = True
        await world.run_for(1200.0)
        assert world.replicas() == standing
        assert world.condition("MetricsAvailable") == ("False", "MetricsMissing")
        assert world.condition("ScalingActive") == ("False", "MetricsMissing")
        assert world.condition("ReplicasHealthy") == ("Unknown", "MetricsMissing")
        assert world.message("ReplicasHealthy").endswith("see MetricsAvailable")
        assert world.message("MetricsAvailable").endswith("run kubectl headroom doctor -n default")
        assert len(world.cluster.events("MetricsStale")) == 1

    play(scenario)


def test_stale_metrics_have_one_reason() -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        world.pods.silent = True
        await world.run_for(40.0)
        assert world.condition("MetricsAvailable") == ("False", "MetricsStale")
        assert world.condition("SLOMet") == ("Unknown", "MetricsStale")
        assert world.message("SLOMet").endswith("see MetricsAvailable")

    play(scenario)


@pytest.mark.parametrize(
    ("coverage", "freshness", "said"),
    [
        (0.5, Freshness.STALE, "50% of the ready replicas have a recent sample"),
        (1.0, Freshness.FRESH, "100% of the ready replicas have a recent sample"),
        (1.0, Freshness.STALE, "one served before its first"),
    ],
)
def test_gap_before_recent_samples_is_named(
    coverage: float, freshness: Freshness, said: str
) -> None:
    known = Signal(freshness=freshness, value=1.0, age_s=0.0)
    signals = Signals(arrival_rps=known, waiting=known, coverage=coverage)
    assert said in samples_of(signals)


def test_brief_loss_of_metrics_leaves_replicas_healthy() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"minReplicas": 2})
        world.pods.arrivals_rps["resnet"] = REPLICA_RPS
        await world.run_for(90.0)
        for _ in range(10):
            world.pods.silent = not world.pods.silent
            for _ in range(6):
                await world.run_for(2.0)
                assert world.condition("ReplicasHealthy") == ("True", "ReplicasAlike")

    play(scenario)


def test_repeated_pages_keep_the_replicas_and_are_named() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        standing, writes = world.replicas(), len(world.cluster.scale_writes)
        world.pods.repeating = True  # all counters stand still, as those of idle replicas do
        await world.run_for(600.0)
        assert (world.replicas(), len(world.cluster.scale_writes)) == (standing, writes)
        assert world.condition("MetricsAvailable") == ("False", "MetricsMissing")
        assert "a proxy or a cache" in world.message("MetricsAvailable")
        world.pods.repeating = False
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.run_for(200.0)
        assert world.condition("MetricsAvailable") == ("True", "MetricsFresh")
        assert world.replicas() < standing

    play(scenario)


def test_restart_keeps_replicas_and_learned_values() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "120s"}})
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        standing, writes = world.replicas(), len(world.cluster.scale_writes)
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.restart_operator()
        await world.run_for(100.0)
        assert world.replicas() == standing
        assert len(world.cluster.scale_writes) == writes
        assert world.status()["coldStart"]["p90"]
        await world.run_for(200.0)
        assert world.replicas() < standing

    play(scenario)


def test_unreadable_checkpoint_is_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        world.create(status={"checkpoint": '{"version": 99}'})
        await world.run_for(20.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)
    assert "starting without memory" in caplog.text


@pytest.mark.parametrize("late_s", [0.0, 2.0], ids=["every scrape", "one late scrape"])
def test_operator_start_is_no_metrics_failure(late_s: float) -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(60.0)
        assert world.condition("SLOMet") == ("Unknown", "NoTraffic")
        await world.restart_operator()
        await world.run_for(3.0)
        world.pods.silent = late_s > 0.0
        await world.run_for(late_s)
        world.pods.silent = False
        for kind in ("MetricsAvailable", "ScalingActive", "SLOMet"):
            assert world.condition(kind) == ("Unknown", "CollectingMetrics"), kind
        await world.run_for(15.0)
        assert world.condition("MetricsAvailable") == ("True", "MetricsFresh")
        assert not [e for e in world.cluster.events() if e["reason"].startswith("Metrics")]

    play(scenario)


def test_ready_pod_without_address_is_named() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.pods.ready("resnet")[0]["status"].pop("podIP")
        await world.run_for(15.0)
        assert world.condition("MetricsAvailable") == ("False", "MetricsStale")
        assert "no podIP yet" in world.message("MetricsAvailable")

    play(scenario)


def test_unlisted_replicas_are_not_taken_for_idle() -> None:
    async def scenario(world: World) -> None:
        world.create(scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        standing = world.replicas()
        assert standing > 2
        hidden = [one["metadata"]["name"] for one in world.pods.ready("resnet")[1:]]
        world.cluster.unlisted.update(hidden)  # an API server that lags behind
        await world.run_for(600.0)
        assert world.replicas() == standing
        assert world.condition("MetricsAvailable") == ("False", "MetricsStale")
        assert f"{len(hidden)} replicas: the workload reports" in world.message("MetricsAvailable")
        world.cluster.unlisted.clear()
        await world.run_for(30.0)
        assert world.condition("MetricsAvailable") == ("True", "MetricsFresh")
        assert world.replicas() == standing

    play(scenario)


def test_pods_whose_owner_is_not_read_yet_are_not_taken_for_absent() -> None:
    """960 pods of others with the labels: 64 owners are read in a tick, so it takes 15 ticks."""

    async def scenario(world: World) -> None:
        world.cluster.update(world.create_workload("own"), with_app_label)
        world.create(target="own")
        await world.run_for(60.0)
        before = len(world.cluster.calls)
        for number in range(960):
            world.cluster.put(stray(number))
        await world.run_for(14.0)
        reads = world.cluster.calls[before:].count(("get", "ReplicaSet"))
        assert 0 < reads <= 8 * 64
        assert world.condition("MetricsAvailable") == ("False", "MetricsStale")
        assert "owners are read in the next ticks" in world.message("MetricsAvailable")
        assert world.replicas("own") == 1
        await world.run_for(60.0)
        assert world.condition("MetricsAvailable") == ("True", "MetricsFresh")

    play(scenario)


def with_app_label(deployment: dict[str, Any]) -> None:
    deployment["spec"]["selector"] = {"matchLabels": {"app": "own"}}
    deployment["spec"]["template"]["metadata"] = {"labels": {"app": "own"}}


def stray(number: int) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "none", "uid": f"u{number}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"stray-{number}",
            "namespace": "default",
            "labels": {"app": "own", "headroom.dev/inference-service": "others"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {},
        "status": {"phase": "Pending"},
    }
