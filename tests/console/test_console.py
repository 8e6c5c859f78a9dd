"""What the operator shows of itself."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestClient, TestServer

from cluster_world import FakeClock, FakeCluster
from controller_world import FakeRecorder
from headroom.api import InferenceService
from headroom.console.health import Health, watch_loop_lag
from headroom.console.instruments import Instruments
from headroom.console.server import application, serve
from headroom.controller.controller import Controller
from headroom.controller.scheduler import Scheduler
from headroom.scaling import Decision, Direction, Freshness, Reason, Signal, Signals
from pods_world import Pods
from service_world import service
from virtual_time import VirtualTimeLoop

DECISION = Decision(
    time_s=1_800_000_000.0,
    current=2,
    replicas=3,
    direction=Direction.UP,
    reason=Reason.UTILIZATION_CEILING,
    message="2 -> 3 replicas",
    signals=Signals(arrival_rps=Signal(freshness=Freshness.FRESH, value=12.5, age_s=1.0)),
    utilization=0.7,
)


def controller() -> Controller:
    clock = FakeClock()
    cluster = FakeCluster(clock)
    return Controller(
        cluster=cluster,
        scraper=Pods(cluster, clock),
        clock=clock,
        recorder=FakeRecorder(),
        instance="operator-0",
        chance=random.Random(1),
    )


async def nothing(*_: object) -> None:
    """Stand for what is never called."""


def virtually(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await story()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_it_is_ready_when_everything_was_listed_once() -> None:
    async def story() -> None:
        watched = controller()
        health = Health(watched)
        assert "CustomResourceDefinition" in health.unready()
        watched.cache.replace([], watched.cache.begin_list())
        assert health.unready() == ""

    virtually(story)


def test_it_lives_while_its_schedule_is_looked_at() -> None:
    async def story() -> None:
        watched = controller()
        health = Health(watched)
        assert health.complaint() == "", "nothing has begun yet"
        task = asyncio.create_task(watched.run())
        await asyncio.sleep(120.0)
        assert health.complaint() == ""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.jump(20.0)
        assert "the schedule was last looked at" in health.complaint()
        task.cancel()
        await asyncio.sleep(20.0)
        assert health.complaint() == "", "another one may decide now"

    virtually(story)


def test_it_does_not_live_while_a_service_waits_for_ever() -> None:
    async def story() -> None:
        watched = controller()
        health = Health(watched)
        watched.scheduler = idle = Scheduler(
            tick=nothing, on_failure=nothing, on_ticked=FakeRecorder().ticked, period_s=2.0
        )
        idle.kick("never started")
        await asyncio.sleep(50.0)
        assert health.complaint() == ""
        await asyncio.sleep(20.0)
        assert "overdue by 70 s" in health.complaint()

    virtually(story)


def test_a_late_event_loop_shows() -> None:
    async def story() -> None:
        late: list[float] = []
        task = asyncio.create_task(watch_loop_lag(late.append))
        await asyncio.sleep(0.6)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.jump(3.0)
        await asyncio.sleep(0.01)
        task.cancel()
        assert late == pytest.approx([0.0, 2.6])

    virtually(story)


def shown(instruments: Instruments, start: str) -> list[str]:
    return [line for line in instruments.page().decode().splitlines() if line.startswith(start)]


def named(name: str) -> InferenceService:
    return replace(service(), name=name)


def test_a_decision_shows_until_its_service_is_gone() -> None:
    instruments = Instruments()
    instruments.decided(named("resnet"), DECISION)
    instruments.decided(named("bert"), DECISION)
    instruments.forgotten(service().namespace, "resnet")
    assert not [line for line in instruments.page().decode().splitlines() if "resnet" in line]
    mine = f'{{name="bert",namespace="{service().namespace}"'
    assert f'headroom_service_replicas{mine},state="desired"}} 3.0' in shown(
        instruments, "headroom_service_replicas"
    )
    assert shown(instruments, "headroom_service_utilization_ratio{") == [
        f"headroom_service_utilization_ratio{mine}}} 0.7"
    ]
    assert 'headroom_operator_decisions_total{reason="UtilizationCeiling"} 2.0' in shown(
        instruments, "headroom_operator_decisions_total"
    )


def test_what_is_absent_has_no_series() -> None:
    instruments = Instruments()
    instruments.decided(named("resnet"), DECISION)
    instruments.decided(named("resnet"), replace(DECISION, utilization=None, signals=Signals()))
    assert shown(instruments, "headroom_service_utilization_ratio{") == []
    assert shown(instruments, "headroom_service_arrivals_per_second{") == []


async def test_the_pages_are_served() -> None:
    instruments = Instruments()
    instruments.ticked(seconds=0.01, lag_s=0.0, outcome="ok")
    instruments.called(verb="get", code="200", seconds=0.002)
    app = application(Health(controller()), instruments)
    async with TestClient(TestServer(app)) as client:
        ready = await client.get("/readyz")
        assert (ready.status, "listed" in await ready.text()) == (503, True)
        assert (await client.get("/livez")).status == 200
        page = await (await client.get("/metrics")).text()
    assert 'headroom_operator_ticks_total{outcome="ok"} 1.0' in page
    assert 'headroom_operator_api_requests_total{code="200",verb="get"} 1.0' in page


async def test_a_port_that_is_taken_is_an_error() -> None:
    app = application(Health(controller()), Instruments())
    async with TestServer(app) as first:
        assert first.port is not None
        second = application(Health(controller()), Instruments())
        with pytest.raises(OSError, match="address already in use"):
            await serve(second, first.port)
