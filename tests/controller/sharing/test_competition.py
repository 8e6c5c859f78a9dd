"""Two services share too few accelerators; each scenario runs on virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from headroom.controller.sharing.competition import seen
from headroom.errors import ClusterError, Rejected, Unavailable
from headroom.scaling import Decision, Direction, LimitApplied, Observation, Pod, PodState, Reason
from support.cluster_world import Manifest
from support.controller_world import REPLICA_RPS, World, play
from support.service_world import service


def _compete(world: World, *, pool: int, high: int = 10, low: int = 0, **of_low: Any) -> None:
    """Two services share a pool: `low` has load for 4 replicas, `high` for 1."""
    world.pods.capacity = pool
    world.pods.drain_s = 10.0
    scaling = {"scaleDown": {"stabilizationWindow": "40s"}}
    world.create("high", scaling={**scaling, "priority": high})
    world.create("low", scaling={**scaling, "priority": low, **of_low})
    _load(world, high=0.5, low=3.5)


def _load(world: World, **replicas: float) -> None:
    for name, number in replicas.items():
        world.pods.arrivals_rps[name] = number * REPLICA_RPS


def _standing(world: World) -> Mapping[str, int]:
    return {name: len(world.pods.ready(name)) for name in ("high", "low")}


def test_shortage_moves_accelerators_to_higher_priority_and_back() -> None:
    async def scenario(world: World) -> None:
        _compete(world, pool=6)
        await world.run_for(120.0)
        before = _standing(world)
        assert before["low"] >= 4
        _load(world, high=3.5)
        await world.run_for(20.0)
        assert _standing(world)["low"] == before["low"]  # not yet for the whole hold
        assert world.condition("CapacityAvailable", "high") == ("False", "ReplicasUnschedulable")

        await world.run_for(60.0)
        taken = _standing(world)
        assert taken["high"] >= 4
        assert taken["high"] + taken["low"] == 6
        assert world.condition("CapacityAvailable", "high")[0] == "True"
        assert world.condition("ScalingLimited", "low") == ("True", "YieldedToPriority")
        assert "default/high (priority 10)" in world.message("ScalingLimited", "low")
        decision = world.status("low")["decision"]
        assert decision["reason"] == "YieldedToPriority"
        assert decision["replicas"] == taken["low"]
        assert "default/high (priority 10) gets the last accelerators" in decision["message"]
        assert world.cluster.events("PreemptingLowerPriority")[0]["note"].startswith(
            "default/low (priority 0) yields"
        )

        _load(world, high=0.5)
        await world.run_for(240.0)
        assert _standing(world)["low"] == before["low"]
        assert world.condition("ScalingLimited", "low") == ("False", "WithinBounds")

    play(scenario)


def test_shortage_causes_no_oscillation() -> None:
    async def scenario(world: World) -> None:
        _compete(world, pool=6)
        await world.run_for(120.0)
        _load(world, high=3.3)
        await world.run_for(90.0)
        settled, writes = _standing(world), len(world.cluster.scale_writes)
        await world.run_for(300.0)
        assert _standing(world) == settled
        assert len(world.cluster.scale_writes) == writes

    play(scenario)


def test_equal_priority_yields_nothing() -> None:
    async def scenario(world: World) -> None:
        _compete(world, pool=6, high=0)
        await world.run_for(120.0)
        before = _standing(world)
        _load(world, high=4.5)
        await world.run_for(200.0)
        assert _standing(world) == {"high": 6 - before["low"], "low": before["low"]}
        assert not world.cluster.events("PreemptingLowerPriority")

    play(scenario)


def test_min_replicas_are_never_preempted() -> None:
    async def scenario(world: World) -> None:
        _compete(world, pool=6, minReplicas=3)
        await world.run_for(120.0)
        _load(world, high=7.5)
        await world.run_for(200.0)
        assert _standing(world) == {"high": 3, "low": 3}
        assert world.replicas("low") == 3
        assert world.status("high")["unschedulableReplicas"] >= 4

    play(scenario)


def test_recommend_mode_and_other_placements_yield_nothing() -> None:
    async def scenario(world: World) -> None:
        _compete(world, pool=6)
        elsewhere = {"podTemplate": {"spec": {"nodeSelector": {"gpu": "a"}}}}
        world.create("other", runtime=elsewhere, scaling={"minReplicas": 1, "priority": -5})
        world.create("advised", scaling={"mode": "Recommend", "minReplicas": 1, "priority": -5})
        world.pods.capacity = 8
        await world.run_for(120.0)
        _load(world, high=8.5)
        await world.run_for(120.0)
        assert _standing(world) == {"high": 5, "low": 1}
        assert len(world.pods.ready("other")) == len(world.pods.ready("advised")) == 1

    play(scenario)


def _autoscaled(world: World) -> None:
    """Something else writes the replicas of `low`."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "low"}
    world.cluster.put(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "low", "namespace": "default"},
            "spec": {"scaleTargetRef": target},
        }
    )


def _refused(error: ClusterError) -> Callable[[World], None]:
    """The API server refuses the replicas of `low`."""

    def follow(world: World) -> None:
        write = world.cluster.apply_scale

        async def refuse(deployment: Manifest, replicas: int, *, field_manager: str) -> Manifest:
            if deployment["metadata"]["name"] == "low":
                raise error
            return await write(deployment, replicas, field_manager=field_manager)

        world.cluster.apply_scale = refuse  # type: ignore[method-assign]

    return follow


def _owned_by_another(world: World) -> None:
    """The Deployment of `low` belongs to another controller."""
    deployment = world.cluster.find("Deployment", "low")
    assert deployment is not None
    other = {"apiVersion": "v1", "kind": "Other", "name": "other", "uid": "1", "controller": True}
    world.cluster.update(deployment, lambda one: one["metadata"].update(ownerReferences=[other]))


@pytest.mark.parametrize(
    "let_nobody_scale",
    [
        pytest.param(_autoscaled, id="HPA"),
        pytest.param(_refused(Rejected("denied")), id="422"),
        pytest.param(_refused(Unavailable("webhook is down")), id="500"),
        pytest.param(_owned_by_another, id="not ours"),
    ],
)
def test_service_whose_replicas_cannot_be_written_yields_nothing(
    let_nobody_scale: Callable[[World], None],
) -> None:
    """The next one by priority yields: `mid`, which has load for 4 replicas as `low` has."""

    async def scenario(world: World) -> None:
        _compete(world, pool=12)
        scaling = {"scaleDown": {"stabilizationWindow": "40s"}, "priority": 5}
        world.create("mid", scaling=scaling)
        _load(world, mid=3.5)
        await world.run_for(150.0)
        before = _standing(world)["low"]
        let_nobody_scale(world)
        await world.run_for(70.0)
        _load(world, high=6.5)
        await world.run_for(150.0)
        assert _standing(world)["low"] == before
        assert _standing(world)["high"] >= 7
        assert len(world.pods.ready("mid")) == 12 - before - _standing(world)["high"]
        assert world.condition("ScalingLimited", "mid") == ("True", "YieldedToPriority")
        assert world.condition("ScalingLimited", "low")[1] != "YieldedToPriority"

    play(scenario)


def test_restart_during_a_shortage_returns_nothing() -> None:
    async def scenario(world: World) -> None:
        _compete(world, pool=6)
        await world.run_for(120.0)
        _load(world, high=3.5)
        await world.run_for(75.0)
        settled = _standing(world)
        await world.restart_operator()
        await world.run_for(60.0)
        assert _standing(world) == settled

    play(scenario)


def test_deleted_service_preempts_nothing() -> None:
    async def scenario(world: World) -> None:
        _compete(world, pool=6)
        await world.run_for(120.0)
        _load(world, high=3.5)
        await world.run_for(90.0)
        world.cluster.delete("InferenceService", "high")
        await world.run_for(60.0)
        assert _standing(world)["low"] >= 4
        assert world.condition("ScalingLimited", "low") == ("False", "WithinBounds")

    play(scenario)


def _pod(state: PodState, *, placed: bool, detail: str = "") -> Pod:
    return Pod(
        uid=f"{state}{placed}{detail}",
        state=state,
        created_s=1.0,
        scheduled_s=2.0 if placed else None,
        detail=detail,
    )


def test_pod_holds_accelerators_from_scheduling_to_deletion() -> None:
    pods = (
        _pod(PodState.READY, placed=True),
        _pod(PodState.WARMING, placed=True),
        _pod(PodState.WARMING, placed=False),  # not looked at by the scheduler yet
        _pod(PodState.BROKEN, placed=True),
        _pod(PodState.TERMINATING, placed=True),
        _pod(PodState.TERMINATING, placed=False),
    )
    decision = Decision(
        time_s=9.0,
        current=6,
        replicas=4,
        direction=Direction.DOWN,
        reason=Reason.YIELDED_TO_PRIORITY,
        message="",
        limits=(LimitApplied(limit=Reason.YIELDED_TO_PRIORITY, before=7, after=4),),
        floor_replicas=2,
    )
    ranker = service(
        spec__accelerator={"resource": "nvidia.com/gpu", "count": 2},
        spec__scaling={"minReplicas": 2, "maxReplicas": 9, "priority": 5},
    )
    found = seen(
        ranker, Observation(now_s=9.0, current=6, pods=pods), decision, "nvidia.com/gpu", 2
    )
    demand = found.demand
    assert (demand.priority, demand.floor, demand.desired) == (5, 2, 7)
    assert (demand.allocated, found.leaving, found.held) == (3, 1, 8)
    assert found.refused == 0


@pytest.mark.parametrize(
    ("says", "refused"),
    [
        ("Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", 1),
        ("0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 Insufficient cpu. x", 1),
        ("1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available", 1),
        ("1 Insufficient nvidia.com/gpu.shared.", 0),
        ("1 Insufficient nvidia.com/gpu-large.", 0),
        ("0/3 nodes are available: 3 Insufficient cpu.", 0),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: }.", 0),
        ("", 0),
    ],
)
def test_only_insufficient_resource_counts_as_shortage(says: str, refused: int) -> None:
    pods = (_pod(PodState.UNSCHEDULABLE, placed=False, detail=says),)
    decision = Decision(
        time_s=9.0,
        current=1,
        replicas=1,
        direction=Direction.NONE,
        reason=Reason.WITHIN_TARGET,
        message="",
    )
    found = seen(
        service(), Observation(now_s=9.0, current=1, pods=pods), decision, "nvidia.com/gpu", 1
    )
    assert found.refused == refused


@pytest.mark.parametrize(("current", "refused"), [(1, 0), (2, 1)])
def test_surge_replica_of_a_rollout_is_no_shortage(current: int, refused: int) -> None:
    lacks = _pod(PodState.UNSCHEDULABLE, placed=False, detail="1 Insufficient nvidia.com/gpu.")
    pods = (_pod(PodState.READY, placed=True), lacks)
    decision = Decision(
        time_s=9.0,
        current=current,
        replicas=current,
        direction=Direction.NONE,
        reason=Reason.WITHIN_TARGET,
        message="",
    )
    found = seen(
        service(), Observation(now_s=9.0, current=current, pods=pods), decision, "nvidia.com/gpu", 1
    )
    assert found.refused == refused


def test_service_that_claims_no_accelerators_yields_those_of_its_template() -> None:
    async def scenario(world: World) -> None:
        gpu = {"name": "server", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        unclaimed = {"podTemplate": {"spec": {"containers": [gpu]}}}
        _compete(world, pool=6, accelerator={"count": 0}, runtime=unclaimed)
        await world.run_for(120.0)
        _load(world, high=3.5)
        await world.run_for(80.0)
        assert _standing(world)["high"] >= 4
        assert world.condition("ScalingLimited", "low") == ("True", "YieldedToPriority")

    play(scenario)


def test_service_with_two_resources_yields_the_scarcer_one() -> None:
    async def scenario(world: World) -> None:
        nic = {"name": "server", "resources": {"limits": {"example.com/nic": 1}}}
        both = {"podTemplate": {"spec": {"containers": [nic]}}}
        _compete(world, pool=6, runtime=both)
        await world.run_for(120.0)
        _load(world, high=3.5)
        await world.run_for(80.0)
        assert _standing(world)["high"] >= 4
        assert world.condition("ScalingLimited", "low") == ("True", "YieldedToPriority")
        world.cluster.delete("InferenceService", "low")
        await world.run_for(30.0)
        assert world.condition("Ready", "high")[0] == "True"

    play(scenario)
