"""The probes of the operator: ready once listed, alive while its schedule and loops run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest

from console.running_controllers import controller
from headroom.api.kind import KIND
from headroom.controller.scheduling.scheduler import Scheduler
from headroom.errors import Unauthenticated
from headroom.ops.checks import Check
from headroom.ops.health import Health, watch_loop_lag
from support.cluster_world import FakeClock, FakeCluster
from support.controller_world import FakeRecorder
from support.virtual_time import VirtualTimeLoop

pytestmark = pytest.mark.clock


def complaints(checks: Iterable[Check]) -> dict[str, str]:
    return {check.name: check.complaint for check in checks if not check.passed}


async def nothing(*_: object) -> None:
    """Stand for what is never called."""


def virtually(scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scenario()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_readyz_passes_after_services_are_listed() -> None:
    async def scenario() -> None:
        watched = controller()
        health = Health(watched)
        assert "CustomResourceDefinition" in complaints(health.readyz())["services-listed"]
        watched.cache.synced.set()
        assert complaints(health.readyz()) == {}

    virtually(scenario)


@pytest.mark.parametrize(("seconds", "ready"), [(50.0, True), (80.0, False)])
def test_readyz_fails_while_credentials_are_not_accepted(seconds: float, ready: bool) -> None:
    async def scenario() -> None:
        cluster = FakeCluster(FakeClock())
        watched = controller(cluster)
        health = Health(watched)
        task = asyncio.create_task(watched.follow())
        await asyncio.sleep(1.0)
        cluster.fail("list_all", KIND, Unauthenticated("Unauthorized (401)"), times=1000)
        await asyncio.sleep(seconds)
        found = complaints(health.readyz())
        assert ("credentials" not in found) is ready
        if not ready:
            assert "ServiceAccount" in found["credentials"]
        cluster.stop_failing()
        await asyncio.sleep(5.0)
        assert complaints(health.readyz()) == {}
        task.cancel()

    virtually(scenario)


def test_livez_passes_while_schedule_runs() -> None:
    async def scenario() -> None:
        watched = controller()
        health = Health(watched)
        assert complaints(health.livez()) == {}, "nothing has begun yet"
        task = asyncio.create_task(watched.run())
        await asyncio.sleep(120.0)
        assert complaints(health.livez()) == {}
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.jump(20.0)
        assert "last ran 2" in complaints(health.livez())["schedule"]
        task.cancel()
        await asyncio.sleep(20.0)
        assert complaints(health.livez()) == {}, "another one may decide now"

    virtually(scenario)


def test_livez_fails_while_a_service_is_overdue() -> None:
    async def scenario() -> None:
        watched = controller()
        health = Health(watched)
        watched.scheduler = idle = Scheduler(
            tick=nothing, on_failure=nothing, on_ticked=FakeRecorder().ticked, period_s=2.0
        )
        idle.evaluate_soon("never started")
        await asyncio.sleep(50.0)
        assert complaints(health.livez()) == {}
        await asyncio.sleep(20.0)
        assert "overdue by 70 s" in complaints(health.livez())["overdue"]

    virtually(scenario)


class Silent:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def silent_s(self) -> float:
        return self._seconds


@pytest.mark.parametrize(("silent_s", "lives"), [(0.0, True), (59.0, True), (61.0, False)])
def test_livez_fails_when_watch_loop_stops(silent_s: float, lives: bool) -> None:
    async def scenario() -> None:
        health = Health(controller(), watch=Silent(silent_s))
        assert ("watch" not in complaints(health.livez())) is lives

    virtually(scenario)


@pytest.mark.parametrize(("lag_s", "lives"), [(0.0, True), (9.0, True), (11.0, False)])
def test_livez_fails_when_event_loop_is_late(lag_s: float, lives: bool) -> None:
    async def scenario() -> None:
        health = Health(controller())
        health.lagged(lag_s)
        assert ("event-loop" not in complaints(health.livez())) is lives

    virtually(scenario)


def test_late_event_loop_is_reported() -> None:
    async def scenario() -> None:
        late: list[float] = []
        task = asyncio.create_task(watch_loop_lag(late.append))
        await asyncio.sleep(0.6)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.jump(3.0)
        await asyncio.sleep(0.01)
        task.cancel()
        assert late == pytest.approx([0.0, 2.6])

    virtually(scenario)
