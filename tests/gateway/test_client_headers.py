"""Headers of class, priority, tenant and retries are accepted from trusted networks only."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiohttp import ClientSession, TCPConnector

from headroom.gateway import Route
from headroom.gateway.listener.client_headers import RETRIES
from headroom.gateway.values import RequestClass, TenantLimit
from support.fakes_gateway import Gateway, Replica, ok, service, url

pytestmark = pytest.mark.clock

TRUSTED, STRANGER = "127.0.0.2", "127.0.0.1"
LIMIT = TenantLimit(header="x-tenant", rate_rps=2, burst=2)
SHARE = TenantLimit(header="x-tenant", rate_rps=2, burst=2, in_flight_percent=50)
URGENT = RequestClass(name="urgent", priority=0, deadline_s=None)
CLAIMED = {"x-request-priority": "0", "x-tenant": "me", **dict.fromkeys(RETRIES, "3")}


async def ask(one: Route, headers: dict[str, str], source: str = STRANGER) -> int:
    """Send a request on a connection of its own, from a loopback address."""
    connector = TCPConnector(local_addr=(source, 0))
    async with (
        ClientSession(connector=connector) as client,
        client.get(url(one), headers=headers) as answered,
    ):
        await answered.read()
        return answered.status


@pytest.mark.parametrize("grpc_port", [None, 1])
@pytest.mark.parametrize("tenants", [None, LIMIT, SHARE])
async def test_claims_of_untrusted_client_reach_no_replica(
    front: Gateway, started: list[Replica], tenants: TenantLimit | None, grpc_port: int | None
) -> None:
    started.append(await Replica(ok).start())
    one = service(
        classes=(URGENT,),
        tenants=tenants,
        trusted_cidrs=(f"{TRUSTED}/32",),
        grpc_port=grpc_port,
    )
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    named = {"x-headroom-idempotent": "false", "x-slo-class": "urgent"}
    assert await ask(one, CLAIMED | named) == 200
    seen = {name.lower(): value for name, value in started[0].seen[-1].items()}
    assert {name for name in CLAIMED | {"x-slo-class": ""} if name in seen} == (
        {"x-tenant"} if tenants else set()
    )
    assert seen.get("x-tenant", STRANGER) == STRANGER
    assert seen["x-headroom-idempotent"] == "false"
    assert await ask(one, CLAIMED | {"x-request-priority": "7"}, TRUSTED) == 200
    seen = {name.lower(): value for name, value in started[0].seen[-1].items()}
    assert (seen["x-request-priority"], seen["x-tenant"]) == ("7", "me")
    assert all(seen[name] == "3" for name in RETRIES)
    assert await ask(one, {"x-slo-class": "urgent", "x-tenant": "you"}, TRUSTED) == 200
    assert started[0].seen[-1]["x-request-priority"] == "0"


@pytest.mark.parametrize("tenants", [LIMIT, SHARE])
async def test_made_up_tenants_do_not_pass_a_rate(
    front: Gateway, started: list[Replica], tenants: TenantLimit
) -> None:
    started.append(await Replica(ok).start())
    one = service(tenants=tenants, trusted_cidrs=())
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    headers = [{"x-tenant": f"tenant-{number}"} for number in range(40)]
    statuses = Counter(await asyncio.gather(*(ask(one, each) for each in headers)))
    assert 2 <= statuses[200] <= 2 + 2 * (1 + loop.time() - begun_s)
    assert statuses[429] == 40 - statuses[200]
    assert await ask(one, {"x-tenant": "tenant-0"}, "127.0.0.3") == 200, "another address is free"
