"""Recognizes obstacles to scaling up: pinned connections, and a limit behind the replicas.

Both are judged by what happened after replicas were added, while latency was over its target.

Pinned connections: some ready replicas have nothing to do for long while others are saturated. One
that works off an older queue gets no requests where routing sees its load; that is no sign.

A limit downstream: half as many replicas again are not busy, and answer hardly more than before,
also if what a request costs is taken into account. Worked: two replicas answered 160/s, 80/s each;
four answer 162/s. If each can still take 80/s, they wait for something else. If a request costs
twice as much now, each takes 40/s: the replicas are the limit, and more of them help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.frozen import replace
from headroom.scaling.mathematics.chance import CERTAIN, IDLE_SHARE, e_folds
from headroom.scaling.values.demand import Obstacle

SETTLED_S = 20.0
"""After the last replica became ready; before it, clients have not had time to use it."""
LASTS_S = 900.0
"""An obstacle is forgotten after so long without evidence."""
REMEMBERED_S = 900.0
_MORE_REPLICAS, _MORE_ANSWERS = 1.5, 1.15
_NEWEST = 0.1
"""Weight of a tick in what this many replicas answer."""


class Answered(NamedTuple):
    """Answers of this many ready replicas while latency was over its target."""

    time_s: float
    rps: float
    busy_replicas: float
    """The same as replicas with full batches at the cost of that time; NaN if not known."""

    def with_newest(self, newest: Answered) -> Answered:
        """Return the mean with another tick."""
        rps, busy = (
            before + _NEWEST * (now - before)
            for before, now in zip(self[1:], newest[1:], strict=True)
        )
        return Answered(newest.time_s, rps, newest.busy_replicas if math.isnan(busy) else busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    """The obstacle seen last, and the answers per second for each number of replicas."""

    obstacle: Obstacle | None = None
    detail: str = ""
    seen_s: float = 0.0
    saturated_since_s: float | None = None
    answered: Mapping[int, Answered] = field(default_factory=dict)
    """Answers per second by the number of ready replicas."""

    def text(self, now_s: float) -> str:
        """Return the evidence, and how long ago it was seen if that is a minute or more."""
        minutes = int((now_s - self.seen_s) // 60.0)
        return f"{minutes} min ago: {self.detail}" if self.detail and minutes > 0 else self.detail

    def observe(
        self,
        now_s: float,
        load: Throughput,
        arrived: NDArray[np.float64],
        busy: NDArray[np.float64],
        *,
        arrived_s: float,
        settled_s: float,
        over_target: bool,
    ) -> Obstacles:
        """Return the record after a tick.

        `arrived` are the requests of each ready replica in the last `arrived_s`, `busy` what it had
        to do in them, with the requests from before.
        """
        since_s = None
        if load.saturated and over_target and settled_s >= SETTLED_S:
            since_s = now_s if self.saturated_since_s is None else self.saturated_since_s
        kept = self
        if since_s != self.saturated_since_s:
            kept = replace(self, saturated_since_s=since_s)
        if self.obstacle is not None and now_s - self.seen_s > LASTS_S:
            kept = replace(kept, obstacle=None, detail="")
        if not over_target or settled_s < SETTLED_S or len(arrived) != load.ready:
            return kept
        pinned = _pinned(load, arrived, busy, arrived_s)
        if pinned:
            return replace(kept, obstacle=Obstacle.CONNECTIONS_PINNED, detail=pinned, seen_s=now_s)
        if since_s is None or now_s - since_s < SETTLED_S:
            return kept
        recent = {
            ready: answered
            for ready, answered in kept.answered.items()
            if now_s - answered.time_s <= REMEMBERED_S
        }
        newest = Answered(now_s, load.answered_rps, load.busy_replicas)
        limited = "" if load.busy else _limited(load.ready, newest, recent)
        recent[load.ready] = recent.get(load.ready, newest).with_newest(newest)
        kept = replace(kept, answered=recent)
        if limited:
            kept = replace(kept, obstacle=Obstacle.DOWNSTREAM_LIMIT, detail=limited, seen_s=now_s)
        return kept

    def with_unused(self, now_s: float, idle: int, ready: int) -> Obstacles:
        """Return the record after a tick that found this many replicas unused by routing."""
        if not idle:
            return self
        return replace(
            self,
            obstacle=Obstacle.CONNECTIONS_PINNED,
            detail=_idle(idle, ready),
            seen_s=now_s,
        )

    def with_shared_limit(self, now_s: float, detail: str) -> Obstacles:
        """Return the record after a tick that found busy replicas waiting for a shared resource."""
        return replace(self, obstacle=Obstacle.DOWNSTREAM_LIMIT, detail=detail, seen_s=now_s)


def _idle(idle: int, ready: int) -> str:
    return f"{idle} of {ready} ready replicas get hardly any of the requests"


def _pinned(
    load: Throughput, arrived: NDArray[np.float64], busy: NDArray[np.float64], arrived_s: float
) -> str:
    """Return the evidence that connections stay with some replicas; empty without any.

    A replica counts as idle if chance does not leave it so few of an even share (Chernoff's bound
    for a Poisson number). Worked: none of 5 are chance among 17 replicas, none of 17 are not. Of
    two, one with 400 waiting gets none of 270 in 30 s, answers 300, and is not idle.
    """
    even = float(arrived.sum()) / max(1, len(arrived))
    busiest = float(arrived.max(initial=0.0)) / arrived_s
    if even <= 0.0 or busiest < 0.75 * load.full_rps:
        return ""
    few = busy[busy < IDLE_SHARE * even]
    idle = int((e_folds(few, even) >= CERTAIN + math.log(len(arrived))).sum())
    if not idle:
        return ""
    return _idle(idle, len(arrived))


def _limited(ready: int, now: Answered, answered: Mapping[int, Answered]) -> str:
    """Return the evidence that added replicas answer no more; empty without any."""
    fewer = [count for count in answered if ready >= _MORE_REPLICAS * count]
    if not fewer:
        return ""
    count = max(fewer)
    before = answered[count]
    more = now.rps > _MORE_ANSWERS * before.rps
    if more or now.busy_replicas > _MORE_ANSWERS * before.busy_replicas:
        return ""
    return f"{ready} replicas answer {now.rps:.3g}/s, {count} answered {before.rps:.3g}/s"
