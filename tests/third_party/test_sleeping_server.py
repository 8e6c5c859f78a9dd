"""The third-party server of the step: batches, counts, connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from headroom.api.service_spec.custom_metrics import CustomMetrics
from load.client import Client
from load.connections import Connections
from load.outcomes import Outcome
from third_party import metrics_api, workload
from third_party.sleeping_server import Counts, Server

pytestmark = pytest.mark.clock


@contextlib.asynccontextmanager
async def serving(
    connections: Connections, connection_requests: int = 0
) -> AsyncIterator[tuple[Server, Client]]:
    server = Server(connection_requests)
    device = asyncio.create_task(server.device.run())
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    client = Client(url, "m", timeout_s=5.0, max_connections=100, connections=connections)
    async with listening, client:
        await client.learn_input()
        yield server, client
    device.cancel()


async def test_requests_that_wait_share_batches_of_at_most_eight() -> None:
    async with serving(Connections(limit=20)) as (server, client):
        endings = await asyncio.gather(*(client.ask(number) for number in range(20)))
    assert {one.outcome for one in endings} == {Outcome.OK}
    assert server.counts.batch_requests == server.counts.arrived == 20
    assert 3 <= server.counts.batches <= 5
    assert server.counts.waiting == server.counts.running == 0


@pytest.mark.parametrize(("each", "opened"), [(0, 1), (2, 3)])
async def test_the_server_closes_a_connection_after_its_requests(each: int, opened: int) -> None:
    async with serving(Connections(limit=1), each) as (server, client):
        before = server.counts.connections
        for number in range(6):
            assert (await client.ask(number)).outcome is Outcome.OK
    assert server.counts.connections - before == opened


def test_the_metrics_that_the_inference_service_names_are_on_the_page() -> None:
    counts = Counts(waiting=3, running=8)
    counts.answered(0.12)
    page = counts.page()
    metrics = CustomMetrics.model_validate(workload.METRICS)
    for name in (reference["name"] for reference in workload.METRICS.values()):
        assert f"\n{name}" in f"\n{page}"
    assert metrics.to_profile(workload.PORT).latency is not None
    assert 'sleeping_request_seconds_bucket{le="0.15"} 1' in page
    assert 'sleeping_request_seconds_bucket{le="0.1"} 0' in page
    assert metrics_api.in_flight(page) == 11


def test_full_batches_give_the_rate_of_a_replica() -> None:
    assert workload.Workload(name="x").full_batch_rps == pytest.approx(80.0)
