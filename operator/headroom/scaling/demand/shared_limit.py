"""Recognizes busy replicas that wait for a shared resource: more of them answer no more.

A model that reads a database in its batch, or replicas that share a GPU: once the shared part is
full, a batch takes the longer, the more replicas there are. Requests seem to cost more, so each
replica seems to carry less, and the ceiling requires more replicas without end. Where requests
cost more for another reason, new replicas answer more as soon as they are ready; here they do not:

    n replicas answer r/s, and soon after m >= 1.5 n, all busy, at most r (1 + 0.3 (m / n - 1))/s

Worked: five replicas answer 12/s of 15/s at 0.4 s each. When ten more are ready, fifteen answer
12/s at 1.25 s each, where 36/s were possible and 19/s would justify more. Requests that cost 1.9
times as much since the minute before look the same, so after a while half as many replicas again
are tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.frozen import replace

MORE_REPLICAS = 1.5
HELPS = 0.3
"""Replicas help that answer more than this share of what as many did before."""
SOON_S = 60.0
"""Costs may have changed between measurements that are further apart."""
TICKS = 4
"""This many ticks at the higher number make a verdict; fewer let growth wait."""
FIRST_S, LONGEST_S = 900.0, 4 * 3600.0
"""More replicas are tried after so long, and in the same overload each time after twice as long."""
_NEWEST = 0.25
"""Weight of a tick in what this many replicas answer."""


class Level(NamedTuple):
    """Answers of this many saturated replicas."""

    time_s: float
    rps: float
    ticks: int

    def is_helped(self, rps: float, more: float) -> bool:
        """Return whether `more` times as many replicas, which answer `rps`, help."""
        return rps > self.rps * (1.0 + HELPS * (more - 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """Answers of saturated replicas in the present overload, and whether more answered more."""

    levels: Mapping[int, Level] = field(default_factory=dict)
    """Levels of answers of the last `SOON_S`, by the number of ready replicas."""
    most: int | None = None
    """More replicas than this would only wait; None: not known."""
    detail: str = ""
    found: tuple[int, Level] | None = None
    """Number of replicas that have shown it, and their answers."""
    tries_s: float = 0.0
    """Time when more replicas are tried."""
    lasts_s: float = FIRST_S
    waits: bool = False
    """Whether this tick looks like such a limit, so that growth waits for the verdict."""

    def observe(
        self, now_s: float, load: Throughput, settled_s: float, *, over_target: bool
    ) -> SharedLimit:
        """Return the record after a tick; the number of ready replicas is `settled_s` old."""
        if not over_target:
            return NO_SHARED_LIMIT
        levels = {n: one for n, one in self.levels.items() if now_s - one.time_s <= SOON_S}
        if load.saturated and settled_s >= load.window_s:
            levels[load.ready] = _with_tick(levels.get(load.ready), now_s, load.answered_rps)
        kept = replace(self, levels=levels, waits=False)
        return kept._judged(now_s, load) if self.most is None else kept._tried(now_s, load)

    def _judged(self, now_s: float, load: Throughput) -> SharedLimit:
        """Return the record with the verdict of this tick, if there is any."""
        fewer = [n for n in self.levels if load.ready >= MORE_REPLICAS * n]
        if not fewer or not load.busy:
            return self
        n, now = max(fewer), self.levels.get(load.ready)
        before, more = self.levels[n], load.ready / n
        if before.is_helped(load.answered_rps, more):
            return self
        if now is None or now.ticks < TICKS or before.is_helped(now.rps, more):
            return replace(self, waits=True)
        return replace(
            self,
            most=load.ready,
            found=(load.ready, now),
            tries_s=now_s + self.lasts_s,
            detail=f"{load.ready} busy replicas answer {now.rps:.3g}/s, {n} answered "
            f"{before.rps:.3g}/s: they wait for something that they share",
        )

    def _tried(self, now_s: float, load: Throughput) -> SharedLimit:
        """Return the record after a tick under a verdict: more replicas are tried, and may help."""
        assert self.most is not None
        assert self.found is not None
        number, level = self.found
        if level.is_helped(load.answered_rps, max(MORE_REPLICAS, load.ready / number)):
            return SharedLimit(levels=self.levels)
        if now_s < self.tries_s:
            return self
        lasts_s = min(LONGEST_S, 2.0 * self.lasts_s)
        most = math.ceil(MORE_REPLICAS * self.most)
        return replace(self, most=most, lasts_s=lasts_s, tries_s=now_s + lasts_s)


def _with_tick(before: Level | None, now_s: float, rps: float) -> Level:
    if before is None:
        return Level(now_s, rps, 1)
    return Level(now_s, before.rps + _NEWEST * (rps - before.rps), before.ticks + 1)


NO_SHARED_LIMIT = SharedLimit()
