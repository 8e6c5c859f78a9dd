"""Measures a live model server with an open loop: requests at Poisson instants.

Latency is measured from the scheduled instant of a request, so a generator that cannot keep up
shows as latency (no coordinated omission). Everything except status 200 is a miss: refusals,
errors, timeouts, and requests above the bound in flight.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from headroom.adapters.pods.live_server import GENERATES, MAX_IN_FLIGHT, LiveServer
from headroom.errors import Unmeasurable
from headroom.scaling.values.observation import PodSample


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """The measurement at one rate."""

    rate_rps: float
    duration_s: float
    latencies_s: tuple[float, ...]
    """Latencies of answers with status 200, from their scheduled instants."""
    missed: int
    late_s: float
    """95th percentile of the delay between scheduled and actual sending: the generator's share."""
    batches: float | None = None
    batch_items: float | None = None
    batch_seconds: float | None = None


_IDLE_REQUESTS = 5


async def idle_s(server: LiveServer) -> float:
    """Return the median latency of sequential requests.

    Raises Unmeasurable if the server refuses them.
    """
    clock = asyncio.get_running_loop().time
    taken = []
    for _ in range(_IDLE_REQUESTS):
        began_s = clock()
        status, text = await server.ask()
        if status != 200:
            raise Unmeasurable(
                f"a single request must be answered with 200; got {status or 'no answer'} "
                f"{text!r:.120}: pass a valid request with --body FILE. {GENERATES}"
            )
        taken.append(clock() - began_s)
    return sorted(taken)[len(taken) // 2]


async def measured_step(
    server: LiveServer, rate_rps: float, duration_s: float, seed: int
) -> MeasuredStep:
    """Send requests at this rate for `duration_s`, and wait until all have ended."""
    before = await server.sample()
    latencies, missed, late = await _send(server, _instants(rate_rps, duration_s, seed))
    after = await server.sample()
    return MeasuredStep(
        rate_rps=rate_rps,
        duration_s=duration_s,
        latencies_s=tuple(latencies),
        missed=missed,
        late_s=sorted(late)[int(0.95 * (len(late) - 1))] if late else 0.0,
        **_batches(before, after),
    )


async def _send(server: LiveServer, due_s: list[float]) -> tuple[list[float], int, list[float]]:
    """Send each request when it is due; return latencies, misses and delays of sending."""
    clock = asyncio.get_running_loop().time
    began_s, in_flight, missed = clock(), 0, 0
    latencies: list[float] = []
    late: list[float] = []

    async def one(due: float) -> None:
        nonlocal in_flight, missed
        late.append(clock() - began_s - due)
        status, _ = await server.ask()
        in_flight -= 1
        if status == 200:
            latencies.append(clock() - began_s - due)
        else:
            missed += 1

    async with asyncio.TaskGroup() as requests:
        for due in due_s:
            await asyncio.sleep(max(0.0, began_s + due - clock()))
            if in_flight >= MAX_IN_FLIGHT:
                missed += 1
                continue
            in_flight += 1
            requests.create_task(one(due))
    return latencies, missed, late


def _instants(rate_rps: float, duration_s: float, seed: int) -> list[float]:
    """Return the instants of a Poisson process with this rate; at least one."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    due = [chance.expovariate(rate_rps)]
    while due[-1] < duration_s:
        due.append(due[-1] + chance.expovariate(rate_rps))
    return due[:-1] or [0.0]


def _batches(before: PodSample | None, after: PodSample | None) -> dict[str, float]:
    """Return the increases of the server's batch counters; empty if unknown."""
    if before is None or after is None or after.batches < before.batches:
        return {}
    return {
        "batches": after.batches - before.batches,
        "batch_items": after.batch_items - before.batch_items,
        "batch_seconds": after.batch_seconds - before.batch_seconds,
    }
