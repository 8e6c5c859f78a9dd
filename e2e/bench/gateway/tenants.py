"""The effect of one tenant's flood on another tenant's p95, with and without shares.

Replicas, Envoy with the operator's configuration, and both tenants' loads are processes on
loopback. How long a request takes varies with a coefficient of variation of 1, and it takes as long
during the flood as without: the p95 of a hundred requests differs by a sixth by chance alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.figures import Figure, at_most, shown
from bench.gateway.many_services import running_envoy
from bench.gateway.routes import bench_route
from bench.server.loading import Load, send
from free_ports import free_port
from headroom.gateway import Endpoint, Route, snapshot
from headroom.gateway.values import TenantLimit

REPLICAS, TAKES_S = 16, 0.4
IN_FLIGHT_PER_REPLICA, BUSY_PER_REPLICA, SHARE_PERCENT = 10, 2, 25
"""Bounds as learned for a target of 2 s. A tenant may have 8 in flight, at half of the replicas."""
RATE_RPS = 0.125 * REPLICAS / TAKES_S
"""Rate of the observed tenant: it has 2 in flight on average."""
FLOOD_RPS = 2.0 * REPLICAS / TAKES_S
ROUNDS, SECONDS = 2, 20
SETTLE_S = 2.0


def measure() -> Sequence[Figure]:
    """Measure; two minutes."""
    with _replicas() as ports:
        return asyncio.run(_figures([Endpoint("127.0.0.1", port) for port in ports]))


async def _figures(replicas: list[Endpoint]) -> list[Figure]:
    route = replace(
        bench_route(free_port()),
        trusted_cidrs=("0.0.0.0/0",),  # the load names its tenants itself
    )
    limit = TenantLimit(header="x-tenant", in_flight_percent=SHARE_PERCENT)
    in_flight, busy = IN_FLIGHT_PER_REPLICA * REPLICAS, BUSY_PER_REPLICA * REPLICAS
    async with running_envoy() as (xds, _, _):

        async def publish(changed: Route) -> None:
            hosts, bound = {changed.key: replicas}, {changed.key: in_flight}
            xds.publish(snapshot([changed], hosts, bound, busy={changed.key: busy}))
            await asyncio.sleep(SETTLE_S)

        await publish(route)
        unshared = await _with_flood(route.port)
        await publish(replace(route, tenants=limit))
        alone, flooded = [], []
        for seed in range(ROUNDS):
            alone.append((await _load(route.port, "other", RATE_RPS, seed)).quantile_s(0.95))
            flooded.append(await _with_flood(route.port, seed))
    alone_s, flooded_s = sum(alone) / ROUNDS, sum(one.quantile_s(0.95) for one in flooded) / ROUNDS
    if alone_s > SECONDS:
        raise RuntimeError("more than 5 % of the tenant's requests fail while it is alone")
    words = f"{FLOOD_RPS:g}/s where {REPLICAS / TAKES_S:g}/s are carried"
    return [
        shown(f"a tenant of {RATE_RPS:g}/s alone: p95", f"{1e3 * alone_s:.0f} ms"),
        shown(f"during a flood of {words}, no shares", _text(unshared)),
        shown(f"with a share of {SHARE_PERCENT} % each", f"{1e3 * flooded_s:.0f} ms"),
        at_most("  compared with alone", flooded_s / alone_s, 1.2, "x", 2),
    ]


def _text(found: Load) -> str:
    p95_s = found.quantile_s(0.95)
    return "refused or unanswered" if p95_s > SECONDS else f"{1e3 * p95_s:.0f} ms"


async def _with_flood(port: int, seed: int = 0) -> Load:
    flood = asyncio.create_task(_load(port, "flood", FLOOD_RPS, 100 + seed, SECONDS + 2))
    await asyncio.sleep(1.0)
    found = await _load(port, "other", RATE_RPS, seed)
    await flood
    return found


async def _load(port: int, tenant: str, rate_rps: float, seed: int, seconds: int = SECONDS) -> Load:
    return await asyncio.to_thread(
        send, [port], rate_rps, seconds, seed, tenant=tenant, takes_s=TAKES_S
    )


@contextlib.contextmanager
def _replicas() -> Iterator[list[int]]:
    """Start replicas without batching."""
    with contextlib.ExitStack() as held:  # at once, so that no two are the same
        probes = [
            held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(REPLICAS)
        ]
        ports = [probe.getsockname()[1] for probe in probes]
    words = ["--ports", *map(str, ports)]
    running = subprocess.Popen([sys.executable, "-m", "bench.gateway.replicas", *words])
    try:
        yield ports
    finally:
        running.kill()
        running.wait()
