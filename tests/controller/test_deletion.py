"""A service whose deletion a finalizer delays: kept as it is, and said so."""

from __future__ import annotations

from support.controller_world import REPLICA_RPS, World, play


def test_service_that_a_finalizer_keeps_says_that_it_is_not_scaled() -> None:
    async def scenario(world: World) -> None:
        service = world.create()
        await world.run_for(60.0)
        assert world.condition("ScalingActive") == ("True", "Auto")
        leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/bill"]}
        world.cluster.update(service, lambda one: one["metadata"].update(leaving))
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas() == 1
        assert world.condition("ScalingActive") == ("False", "Deleting")
        assert "example.com/bill" in world.message("ScalingActive")
        before = world.cluster.calls.count(("apply_status", "InferenceService"))
        await world.run_for(60.0)
        assert world.cluster.calls.count(("apply_status", "InferenceService")) == before
        await world.restart_operator()
        await world.run_for(30.0)
        assert world.cluster.calls.count(("apply_status", "InferenceService")) == before

    play(scenario)
