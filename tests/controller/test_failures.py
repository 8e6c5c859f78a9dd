"""Failures that the controller survives: bad objects, a failing API, deletions, crashes."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.errors import Forbidden, NotFound, Unavailable
from support.controller_world import REPLICA_RPS, World, play

WRITES_OF_A_LIFE = 14


def test_stored_invalid_spec_holds_everything() -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        standing = world.replicas()
        world.edit(scaling={"minReplicas": 7, "maxReplicas": 2})
        world.pods.arrivals_rps["resnet"] = 0.0
        world.cluster.calls.clear()
        await world.run_for(600.0)
        assert world.replicas() == standing
        assert world.condition("Ready") == ("False", "InvalidSpec")
        assert world.condition("ScalingActive") == ("False", "InvalidSpec")
        assert set(world.cluster.writes()) == {
            ("apply_status", "InferenceService"),
            ("create", "Event"),
        }
        assert world.status()["checkpoint"]
        world.edit()
        await world.run_for(10.0)
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


def test_failed_tick_names_the_service_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.cluster.fail("list_all", "Pod", Forbidden("no list on pods"))
        await world.run_for(5.0)

    play(scenario)
    assert "default/resnet: tick failed: Forbidden: no list on pods" in caplog.text


def test_failed_tick_is_reported_as_evaluation_failed() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.fail("list_all", "Pod", Forbidden("no list on pods"), times=2)
        await world.run_for(3.0)
        assert world.condition("ScalingActive") == ("Unknown", "EvaluationFailed")
        assert "no list on pods" in world.message("ScalingActive")
        await world.run_for(10.0)
        assert world.condition("ScalingActive") == ("True", "Auto")

    play(scenario)


def test_failing_service_stops_no_other() -> None:
    async def scenario(world: World) -> None:
        poisoned = world.create("poisoned")
        poisoned["metadata"]["generation"] = "not a number"
        world.create("healthy")
        await world.run_for(60.0)
        assert world.condition("Ready", "healthy") == ("True", "Serving")

    play(scenario)


def test_api_outage_of_minutes_is_survived() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.cluster.fail("get", "Deployment", Unavailable("down", retry_after_s=1.0), times=8)
        await world.run_for(300.0)
        assert world.recorder.outcomes.count("Unavailable") == 8
        assert world.recorder.outcomes[-1] == "ok"
        assert world.condition("ScalingActive") == ("True", "Auto")

    play(scenario)


def test_deleted_service_without_event_is_discarded() -> None:
    async def scenario(world: World) -> None:
        world.create("notified")
        world.create("unnotified")
        await world.run_for(20.0)
        world.cluster.delete("InferenceService", "notified")
        world.watching = False
        world.cluster.delete("InferenceService", "unnotified")
        await world.run_for(70.0)
        assert world.recorder.gone == ["default/notified", "default/unnotified"]
        world.cluster.calls.clear()
        await world.run_for(30.0)
        assert ("get", "Deployment") not in world.cluster.calls

    play(scenario)


def test_service_deleted_during_a_tick_gets_no_children() -> None:
    async def scenario(world: World) -> None:
        follow = world.cluster.before_call

        def delete_it(verb: str, kind: str) -> None:
            follow(verb, kind)
            if (verb, kind) == ("create", "Service"):
                world.cluster.delete("InferenceService", "resnet")

        world.cluster.before_call = delete_it
        world.create()
        await world.run_for(10.0)
        assert world.cluster.find("Deployment", "resnet") is None

    play(scenario)


def test_lagging_api_server_removes_no_service() -> None:
    """Something of the service was not found, and the LIST that follows is from before it was."""

    async def scenario(world: World) -> None:
        past = await world.cluster.list_at("headroom.dev/v1alpha1", "InferenceService", None)
        world.create()
        await world.run_for(2.0)
        present, world.cluster.list_at = world.cluster.list_at, lambda *_, **__: _given(past)  # type: ignore[method-assign]
        world.cluster.fail("apply_status", "InferenceService", NotFound("not found"))
        await world.run_for(30.0)
        world.cluster.list_at = present  # type: ignore[method-assign]
        assert world.recorder.gone == []
        assert world.condition("Ready") == ("True", "Serving")

    play(scenario)


def test_restored_etcd_is_followed_within_two_minutes() -> None:
    async def scenario(world: World) -> None:
        for name in ("resnet", "bert"):
            world.create(name)
        await world.run_for(60.0)
        restore = world.cluster.backup("InferenceService")
        for least in range(1, 200):  # the versions of before are not reached for long
            world.edit(scaling={"minReplicas": 1 + least % 2})
        world.cluster.delete("InferenceService", "bert")
        await world.run_for(60.0)
        assert world.replicas() == 2
        world.watching = False
        restore()
        world.edit(scaling={"minReplicas": 5})
        await world.run_for(40.0)
        assert world.replicas() == 2, "it may be an API server that lags"
        await world.run_for(80.0)
        assert world.replicas() == 5
        for name in ("resnet", "bert"):
            service = world.cluster.find("InferenceService", name)
            assert service is not None
            assert world.status(name)["observedGeneration"] == service["metadata"]["generation"]
            assert world.condition("Ready", name)[0] == "True"

    play(scenario)


async def _given(listed: tuple[list[Any], str]) -> tuple[list[Any], str]:
    return listed


def test_recreated_service_starts_without_the_old_state() -> None:
    async def scenario(world: World) -> None:
        first = world.create()
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        await world.run_for(90.0)
        world.cluster.delete("InferenceService", "resnet")
        world.pods.arrivals_rps["resnet"] = 0.0
        second = world.create()
        await world.run_for(20.0)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert world.replicas() == 1
        assert world.recorder.gone == ["default/resnet"]

    play(scenario)


@pytest.mark.parametrize("taken", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("nth", range(WRITES_OF_A_LIFE))
def test_crash_around_any_write_converges(nth: int, taken: bool) -> None:
    """The process dies at its nth write, before or after the API server took it."""

    async def scenario(world: World) -> None:
        world.pods.arrivals_rps["resnet"] = 4 * REPLICA_RPS
        follow = world.cluster.before_call
        writes = 0
        dead: list[str] = []

        def crash(verb: str, kind: str) -> None:
            nonlocal writes
            follow(verb, kind)
            if verb not in ("get", "list_all"):
                writes += 1
            if dead or (writes == nth + 1 and not taken):
                dead.append(verb)
                raise Unavailable("the process is gone")
            if writes == nth + 1:
                dead.append("at the next call")

        world.cluster.before_call = crash
        world.create()
        while not dead:
            await world.run_for(0.1)
        await world.run_for(0.1)
        world.cluster.before_call = follow
        await world.restart_operator()
        await world.run_for(60.0)
        assert world.condition("Ready") == ("True", "Serving")
        assert 4 <= world.replicas() <= 6
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment
        managers = [one["manager"] for one in deployment["metadata"]["managedFields"]]
        assert sorted(managers) == ["headroom", "headroom-scaler"]

    play(scenario)
