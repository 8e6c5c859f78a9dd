"""The gateways' counts: the parser, and a real Envoy that produces them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientTimeout, web
from hypothesis import given, settings
from hypothesis import strategies as st

from free_ports import free_port
from headroom.gateway.listener.access_counts import ADMIN_PATH, Bin, ServiceCounters, read
from headroom.gateway.values import TenantLimit
from support.fakes_gateway import Gateway, Replica, gateway, is_open, route, until

pytestmark = pytest.mark.clock

KEY = "vision/resnet50"


def page(values: Mapping[str, int], timed: Mapping[str, list[tuple[float, float, int]]]) -> str:
    """A page as Envoy writes it."""
    details = [
        {
            "name": name,
            "totals": [{"lower_bound": low, "width": width, "count": n} for low, width, n in bins],
            "intervals": [],
            "percentiles": [],
        }
        for name, bins in timed.items()
    ]
    stats: list[Any] = [{"name": name, "value": value} for name, value in values.items()]
    return json.dumps({"stats": [*stats, {"histograms": {"details": details}}]})


def ended(code: int, flags: str = "-", grpc: str = "", to: str = KEY) -> str:
    return f"headroom.requests.service.{KEY}.to.{to}.code.{code}.flags.{flags}.grpc.{grpc}"


@pytest.mark.parametrize(
    ("name", "missed", "rejected", "arrived"),
    [
        (ended(200), 0, 0, 1),
        (ended(101), 0, 0, 1),
        (ended(404), 0, 0, 1),
        (ended(408), 0, 0, 1),
        (ended(413), 0, 0, 1),
        (ended(429), 1, 0, 1),
        (ended(429, "URX"), 1, 0, 1),
        (ended(429, "UO"), 1, 1, 1),
        (ended(429, "RL"), 0, 0, 0),
        (ended(500), 1, 0, 1),
        (ended(503, "UH"), 1, 1, 1),
        (ended(503, "UF,URX"), 1, 1, 1),
        (ended(504, "DT"), 1, 0, 1),
        (ended(0, "DC"), 1, 0, 1),
        (ended(200, "-", "0"), 0, 0, 1),
        (ended(200, "-", "3"), 0, 0, 1),
        (ended(200, "-", "8"), 1, 0, 1),
        (ended(200, "UO", "14"), 1, 1, 1),
        ("cluster.admin.upstream_rq_total", 0, 0, 0),
        ("headroom.requests.service.", 0, 0, 0),
    ],
)
def test_outcome_is_classified_by_code_flags_and_grpc_status(
    name: str, missed: int, rejected: int, arrived: int
) -> None:
    counted = read(page({name: 1}, {})).get(KEY, ServiceCounters())
    assert (counted.missed, counted.rejected, counted.arrived) == (missed, rejected, arrived)


def test_page_is_parsed() -> None:
    timed = f"headroom.answered_microseconds.service.{KEY}.to.{KEY}.grpc."
    calls = f"headroom.answered_microseconds.service.{KEY}.to.{KEY}/grpc.grpc.0"
    values = {
        ended(200): 20,
        ended(500): 3,
        ended(503, "DT", to="-"): 1,
        ended(200, to="vision/canary"): 5,
        f"cluster.{KEY}.upstream_rq_active": 2,
        f"cluster.{KEY}/grpc.upstream_rq_active": 1,
        f"cluster.{KEY}/gate/7.upstream_rq_active": 3,
        "cluster.admin.upstream_rq_active": 1,
    }
    bins = [(919.9999999999999, 10.0, 4), (15000.0, 1000.0, 16)]
    found = read(page(values, {timed: bins, calls: [(15000.0, 1000.0, 1)]}))
    assert found == {
        KEY: ServiceCounters(
            arrived=27,
            ended=24,
            active=3,
            missed=4,
            answered={Bin(920, 930): 4, Bin(15000, 16000): 17},
        ),
        "vision/canary": ServiceCounters(arrived=5, ended=5),
    }


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
@settings(max_examples=50)
def test_malformed_page_is_rejected(junk: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(junk)


@pytest.mark.parametrize("value", [[], {}, {"stats": 3}, {"stats": [3]}, {"stats": [{"name": 1}]}])
def test_json_of_another_shape_is_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="not a page of gateway counts"):
        read(json.dumps(value))


async def counted(front: Gateway) -> ServiceCounters:
    async with front.client.get(f"http://127.0.0.1:{front.admin_port}{ADMIN_PATH}") as answered:
        assert answered.status == 200
        return read(await answered.text()).get(KEY, ServiceCounters())


async def test_envoy_counts_outcomes_as_clients_see_them(tmp_path: Path) -> None:
    async def answers(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(0.25 if request.path == "/slow" else 0.0)
        return web.Response(status=int(request.query.get("status", "200")))

    async with gateway(tmp_path) as front:
        replica = await Replica(answers).start()
        one = route(port=free_port(), tenants=TenantLimit(header="x-tenant", rate_rps=5, burst=5))
        await front.tell(one, replicas={one.key: [replica.endpoint]})
        url = f"http://127.0.0.1:{one.port}"

        async def ask(path: str, tenant: str, **more: Any) -> int:
            async with front.client.post(
                url + path, data=b"x", headers={"x-tenant": tenant}, **more
            ) as answered:
                await answered.read()
                return answered.status

        assert [await ask("/", "a") for _ in range(4)] == [200] * 4
        assert await ask("/slow", "b") == 200
        assert await ask("/?status=500", "b") == 500
        assert await ask("/?status=404", "b") == 404
        assert await ask("/?status=429", "b") == 429  # and its second try
        flood = await asyncio.gather(*(ask("/", "c") for _ in range(40)))
        with pytest.raises(TimeoutError):
            await ask("/slow", "d", timeout=ClientTimeout(total=0.05))
        await replica.stop()
        await front.tell(one, replicas={one.key: []})
        assert await ask("/", "e") == 503

        arrived = 4 + 1 + 3 + flood.count(200) + 1 + 1
        assert flood.count(429) >= 6

        async def known() -> bool:
            now = await counted(front)
            answered = sum(now.answered.values())
            return now.arrived == arrived and answered + now.missed == arrived - 1  # but the 404

        await until(known, "all of it is counted", within_s=5.0)
        now = await counted(front)
        assert (now.missed, now.rejected) == (4, 1)
        slow = [one for one, number in now.answered.items() if one.upper_us > 250e3 and number]
        assert len(slow) == 1
        assert now.active == 0
        other = f"http://127.0.0.1:{front.ops_port}"
        for path in ("/stats", "/stats/services/x", "/config_dump"):
            async with front.client.get(other + path) as refused:
                assert refused.status == 404
        assert await is_open(one.port)
