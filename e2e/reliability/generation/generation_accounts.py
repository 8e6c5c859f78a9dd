"""The accounts of a generating server's soak: clients' outcomes against the server's counts."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp

SETTLE_SHARE, LAST_SHARE = 0.25, 0.1
"""Memory is compared between the tenth after the first quarter and the last tenth."""
SETTLE_TRIES, SETTLE_PAUSE_S = 100, 0.3
RUNNING = 'headroom_requests_running{model="model"}'
USED_BLOCKS = 'headroom_kv_blocks{model="model",state="used"}'


@dataclass(slots=True)
class Accounts:
    """Counts of the clients, and those of the server."""

    seen: Counter[str] = field(default_factory=Counter)
    memory_mb: list[float] = field(default_factory=list)
    page: Mapping[str, float] = field(default_factory=dict)
    kills: int = 0

    def wrongs(self) -> Sequence[str]:
        """Return the accounts that do not agree."""
        page = self.page
        outcomes = {
            name: page[f'headroom_requests_total{{model="model",outcome="{name}"}}']
            for name in ("ok", "refused", "expired", "cancelled", "failed")
        }
        received = page['headroom_requests_received_total{model="model"}']
        checks = {
            "received as many as were sent": received == self.seen["sent"],
            "every request has one outcome": received == sum(outcomes.values()),
            "complete answers are ok": outcomes["ok"] >= self.seen["complete"],
            "refusals are those that clients saw": outcomes["refused"] == self.seen["refused"],
            "none failed": outcomes["failed"] == 0 == self.seen["broken"],
            "nothing waits or runs": page[RUNNING] == 0,
            "no block is held": page[USED_BLOCKS] == 0,
        }
        return [
            f"{name}: {outcomes}, {dict(self.seen)}" for name, is_so in checks.items() if not is_so
        ]

    @property
    def growth(self) -> float:
        """Memory at the end in relation to that after the first quarter."""
        count = len(self.memory_mb)
        window = max(1, int(LAST_SHARE * count))
        first = int(SETTLE_SHARE * count)
        early = statistics.median(self.memory_mb[first : first + window])
        return statistics.median(self.memory_mb[-window:]) / early


async def settled(port: int) -> Mapping[str, float]:
    """Return the metrics when nothing runs, or what there is after half a minute."""
    page: Mapping[str, float] = {}
    for _ in range(SETTLE_TRIES):
        page = await metrics_page(port)
        if not page[RUNNING] and not page[USED_BLOCKS]:
            break
        await asyncio.sleep(SETTLE_PAUSE_S)
    return page


async def metrics_page(port: int) -> Mapping[str, float]:
    """Return the metrics without buckets, once the server answers."""
    async with aiohttp.ClientSession() as http, asyncio.timeout(60):
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"http://127.0.0.1:{port}/v2/health/ready") as ready:
                    if ready.status == 200:
                        break
            await asyncio.sleep(0.1)
        async with http.get(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = [one for one in (await answer.text()).splitlines() if one[:1] != "#"]
    return {name: float(value) for name, _, value in (one.rpartition(" ") for one in lines)}
