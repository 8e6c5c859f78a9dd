"""What the operator shows of itself."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from cluster_world import FakeClock, FakeCluster
from controller_world import FakeRecorder
from free_ports import free_port
from headroom.api import InferenceService
from headroom.bounded_listener import PAGE_CONNECTIONS
from headroom.controller.controller import Controller
from headroom.controller.scheduling.scheduler import Scheduler
from headroom.ops.checks import Check
from headroom.ops.health import Health, watch_loop_lag
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.ops.server import application, serve
from headroom.scaling import (
    Decision,
    Demand,
    DemandKnown,
    Direction,
    Freshness,
    Obstacle,
    Reason,
    Signal,
    Signals,
)
from pods_world import Pods
from service_world import service
from virtual_time import VirtualTimeLoop

pytestmark = pytest.mark.clock

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


async def test_clients_that_do_not_read_pages_are_few() -> None:
    """A page of a thousand services has a megabyte."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(body=bytes(8 << 20))

    app = web.Application()
    app.add_routes([web.get("/metrics", page)])
    port = free_port()
    serving = asyncio.create_task(serve(app, port, "127.0.0.1"))
    await asyncio.sleep(0.1)
    kept = 0
    writers = []
    for _ in range(2 * PAGE_CONNECTIONS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writers.append(writer)
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
        with suppress(OSError):
            kept += bool(await reader.read(1))
    assert kept == PAGE_CONNECTIONS // 2
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
    assert await reader.readexactly(12) == b"HTTP/1.1 200", "another address"
    for each in (*writers, writer):
        each.transport.abort()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


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


def complaints(checks: Iterable[Check]) -> dict[str, str]:
    return {check.name: check.complaint for check in checks if not check.passed}


async def nothing(*_: object) -> None:
    """Stand for what is never called."""


def virtually(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await story()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_readyz_passes_after_services_are_listed() -> None:
    async def story() -> None:
        watched = controller()
        health = Health(watched)
        assert "CustomResourceDefinition" in complaints(health.readyz())["services-listed"]
        watched.cache.synced.set()
        assert complaints(health.readyz()) == {}

    virtually(story)


def test_livez_passes_while_schedule_runs() -> None:
    async def story() -> None:
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

    virtually(story)


def test_livez_fails_while_a_service_is_overdue() -> None:
    async def story() -> None:
        watched = controller()
        health = Health(watched)
        watched.scheduler = idle = Scheduler(
            tick=nothing, on_failure=nothing, on_ticked=FakeRecorder().ticked, period_s=2.0
        )
        idle.kick("never started")
        await asyncio.sleep(50.0)
        assert complaints(health.livez()) == {}
        await asyncio.sleep(20.0)
        assert "overdue by 70 s" in complaints(health.livez())["overdue"]

    virtually(story)


class Silent:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def silent_s(self) -> float:
        return self._seconds


@pytest.mark.parametrize(("silent_s", "lives"), [(0.0, True), (59.0, True), (61.0, False)])
def test_livez_fails_when_watch_loop_stops(silent_s: float, lives: bool) -> None:
    async def story() -> None:
        health = Health(controller(), watch=Silent(silent_s))
        assert ("watch" not in complaints(health.livez())) is lives

    virtually(story)


@pytest.mark.parametrize(("lag_s", "lives"), [(0.0, True), (9.0, True), (11.0, False)])
def test_livez_fails_when_event_loop_is_late(lag_s: float, lives: bool) -> None:
    async def story() -> None:
        health = Health(controller())
        health.lagged(lag_s)
        assert ("event-loop" not in complaints(health.livez())) is lives

    virtually(story)


def test_late_event_loop_is_reported() -> None:
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


def shown(instruments: OperatorMetrics, start: str) -> list[str]:
    return [line for line in instruments.page().decode().splitlines() if line.startswith(start)]


SPACE = service().namespace


def named(name: str) -> InferenceService:
    return replace(service(), name=name)


def test_decision_metrics_last_until_service_is_deleted() -> None:
    instruments = OperatorMetrics()
    instruments.decided(named("resnet"), DECISION)
    instruments.decided(named("bert"), DECISION)
    instruments.forgotten(service().namespace, "resnet")
    assert not [line for line in instruments.page().decode().splitlines() if "resnet" in line]
    mine = f'{{inferenceservice="bert",namespace="{service().namespace}"'
    assert f'headroom_service_replicas{mine},state="desired"}} 3.0' in shown(
        instruments, "headroom_service_replicas"
    )
    assert shown(instruments, "headroom_service_utilization_ratio{") == [
        f"headroom_service_utilization_ratio{mine}}} 0.7"
    ]
    assert 'headroom_operator_decisions_total{reason="UtilizationCeiling"} 2.0' in shown(
        instruments, "headroom_operator_decisions_total"
    )


def test_demand_and_obstacles_are_metrics() -> None:
    instruments, mine = OperatorMetrics(), f'inferenceservice="bert",namespace="{SPACE}"'
    hidden = Demand(known=DemandKnown.AT_LEAST, rate_rps=160.0, at_most_rps=533.0)
    pinned = replace(
        DECISION,
        demand=hidden,
        obstacle=Obstacle.CONNECTIONS_PINNED,
        margin=1.4,
        late_share=0.031,
    )
    for decision, value in ((pinned, 1.0), (DECISION, 0.0)):
        instruments.decided(named("bert"), decision)
        page = instruments.page().decode()
        for name, label in (("demand_known", "AtLeast"), ("obstacle", "ConnectionsPinned")):
            key = name.rsplit("_", maxsplit=1)[-1]
            assert f'headroom_service_{name}{{{mine},{key}="{label}"}} {value}\n' in page
        assert f"headroom_service_margin_ratio{{{mine}}} {decision.margin}\n" in page
    assert shown(instruments, "headroom_service_late_requests_ratio{") == []
    assert shown(instruments, "headroom_service_demand_at_most_per_second{") == []
    instruments.decided(named("bert"), replace(DECISION, feasible=False))
    infeasible = f'headroom_service_obstacle{{{mine},obstacle="SLOInfeasible"}} 1.0'
    assert infeasible in shown(instruments, "headroom_service_obstacle")


def test_unknown_value_has_no_series() -> None:
    instruments = OperatorMetrics()
    instruments.decided(named("resnet"), DECISION)
    instruments.decided(named("resnet"), replace(DECISION, utilization=None, signals=Signals()))
    assert shown(instruments, "headroom_service_utilization_ratio{") == []
    assert shown(instruments, "headroom_service_arrivals_per_second{") == []


async def test_endpoints_are_served() -> None:
    instruments = OperatorMetrics()
    instruments.ticked(seconds=0.01, lag_s=0.0, outcome="ok")
    instruments.called(verb="get", code="200", seconds=0.002)
    app = application(Health(controller()), instruments)
    async with TestClient(TestServer(app)) as client:
        ready = await client.get("/readyz")
        body = await ready.json()
        assert (ready.status, body["status"]) == (503, "failed")
        assert body["checks"][-1]["name"] == "services-listed"
        assert body["leadership"] == {"leading": True, "lease": False}
        lines = (await (await client.get("/readyz?verbose")).text()).splitlines()
        assert lines[0].startswith("[-]services-listed failed: InferenceServices are not listed")
        assert lines[-1] == "readyz check failed"
        alive = await client.get("/livez?verbose")
        assert (alive.status, (await alive.text()).splitlines()) == (
            200,
            [
                "[+]schedule ok",
                "[+]overdue ok",
                "[+]event-loop ok",
                "[+]watch ok",
                "livez check passed",
            ],
        )
        page = await (await client.get("/metrics")).text()
    assert 'headroom_operator_ticks_total{outcome="ok"} 1.0' in page
    assert 'headroom_operator_api_requests_total{code="200",verb="get"} 1.0' in page


@pytest.mark.parametrize("address", [None, "127.0.0.1", "::1"])
async def test_pages_are_served_on_every_kind_of_address(address: str | None) -> None:
    port, app = free_port(), application(Health(controller()), OperatorMetrics())
    serving = asyncio.create_task(serve(app, port, address))
    await asyncio.sleep(0.1)
    _, writer = await asyncio.open_connection(address or "127.0.0.1", port)
    writer.close()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_serve_on_taken_port_raises() -> None:
    app = application(Health(controller()), OperatorMetrics())
    async with TestServer(app) as first:
        assert first.port is not None
        second = application(Health(controller()), OperatorMetrics())
        with pytest.raises(OSError, match=r"(?i)address already in use"):
            await serve(second, first.port)
