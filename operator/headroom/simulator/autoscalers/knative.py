"""Knative's pod autoscaler (KPA) on concurrency or requests: a stable and a panic window.

Source: knative/serving, pkg/autoscaler/scaling/autoscaler.go and config/core/configmaps/
autoscaler.yaml: tick 2 s, stable 60 s, panic window 10 % of it, panic threshold 200 %, target
utilization 70 %, at most x1000 up and /2 down per tick, counted from *ready* pods. Concurrency is
the count of the queue-proxies, with queued requests, scraped every second.

Choices: the published target of 100 in flight per replica assumes a web server; here a replica's
concurrency is its places (containerConcurrency), of which 70 % are the target. A scrape that
misses pods is scaled to all ready ones, as its scraper does with samples. The windows are in the
autoscaler, so a restart of the metrics store does not affect them. The activator is not part of
the plant: requests are not held at zero, and its grace period of 30 s has no effect. With the
metric `rps` the target is a share of the true capacity of a replica.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer, of_ready, ready_pods, round_up
from headroom.simulator.compiled.plant_layout import Column


@dataclass(kw_only=True)
class TickWindow:
    """A mean over ticks, as aggregation/bucketing.go: gaps count as 0, a stale tail is ignored."""

    window_s: float
    tick_s: float
    _values: dict[int, float] = field(default_factory=dict, init=False)
    _first: int = field(default=0, init=False)

    def record(self, now_s: float, value: float) -> None:
        """Add one tick's value."""
        tick = round(now_s / self.tick_s)
        self._values = {at: past for at, past in self._values.items() if at > tick - self._ticks}
        if not self._values:
            self._first = tick
        self._values[tick] = value

    def mean(self, now_s: float) -> float | None:
        """Return the mean from the oldest tick in the window to the last recorded; None without."""
        start = round(now_s / self.tick_s) - self._ticks + 1
        inside = {at: value for at, value in self._values.items() if at >= start}
        if not inside:
            return None
        return sum(inside.values()) / (max(inside) - max(start, self._first) + 1)

    @property
    def _ticks(self) -> int:
        return max(1, round(self.window_s / self.tick_s))


@dataclass(kw_only=True)
class Knative(Peer):
    """ceil(concurrency / target) per window, the larger one in panic, never down in panic."""

    kind: ClassVar[str] = "knative"
    may_be_zero: ClassVar[frozenset[str]] = frozenset({"scale_down_delay_s", "rps_share"})

    period_s: float = 2.0
    scrape_s: float = 1.0
    concurrency_batches: float = 1.0
    """Requests in flight per replica at 100 %, in batches."""
    target_utilization: float = 0.7
    rps_share: float = 0.0
    """Above 0: the metric is requests per second, and this share of a replica's true capacity the
    target. 0: the metric is concurrency."""
    stable_window_s: float = 60.0
    panic_window_ratio: float = 0.1
    panic_threshold: float = 2.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    scale_down_delay_s: float = 0.0
    _stable: TickWindow = field(init=False, repr=False)
    _panic: TickWindow = field(init=False, repr=False)
    _panic_s: float | None = field(default=None, init=False, repr=False)
    _panic_pods: int = field(default=0, init=False, repr=False)
    _started: bool = field(default=False, init=False, repr=False)
    _delayed: list[tuple[float, int]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        panic_s = self.stable_window_s * self.panic_window_ratio
        self._stable = TickWindow(window_s=self.stable_window_s, tick_s=self.period_s)
        self._panic = TickWindow(window_s=panic_s, tick_s=self.period_s)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the desired pod count, or the current one without data."""
        ready = len(ready_pods(view))
        if not self._started:
            # A new autoscaler has no history: with more than one pod it starts in panic mode.
            self._started = True
            self._panic_s, self._panic_pods = (view.now_s, ready) if ready > 1 else (None, 0)
        self._record(view, ready)
        stable, panic = self._stable.mean(view.now_s), self._panic.mean(view.now_s)
        if stable is None or panic is None:
            return ScaleRequest(replicas=view.replicas, reason="NoData")
        return self._scale(view.now_s, max(1, ready), stable, panic)

    def _record(self, view: View, ready: int) -> None:
        # Two ticks' worth of seconds hold at least two scrapes, which a rate needs.
        column = Column.ARRIVALS if self.rps_share else Column.IN_FLIGHT_S
        rates = of_ready(view.metrics.rate(column, view.now_s, self.period_s + self.scrape_s), view)
        present = of_ready(view.metrics.instant(column), view)
        fresh = [uid for uid in rates if uid in present]
        if fresh:
            value = sum(rates[uid] for uid in fresh) / len(fresh) * ready
            self._stable.record(view.now_s, value)
            self._panic.record(view.now_s, value)

    def _scale(self, now_s: float, ready: int, stable: float, panic: float) -> ScaleRequest:
        target = self._target()
        low = math.floor(ready / self.max_scale_down_rate)
        high = math.ceil(self.max_scale_up_rate * ready)
        stable_pods = min(max(round_up(stable / target), low), high)
        wanted_in_panic = round_up(panic / target)
        panic_pods = min(max(wanted_in_panic, low), high)
        if wanted_in_panic / ready >= self.panic_threshold:
            self._panic_s = now_s
        elif self._panic_s is not None and self._panic_s + self.stable_window_s < now_s:
            self._panic_s, self._panic_pods = None, 0
        if self._panic_s is None:
            return ScaleRequest(replicas=self._delay(now_s, stable_pods), reason="Stable")
        self._panic_pods = max(self._panic_pods, stable_pods, panic_pods)
        return ScaleRequest(replicas=self._delay(now_s, self._panic_pods), reason="Panic")

    def _target(self) -> float:
        if self.rps_share:
            return self.rps_share * self.truth.capacity_rps
        return self.concurrency_batches * self.places * self.target_utilization

    def _delay(self, now_s: float, wanted: int) -> int:
        if not self.scale_down_delay_s:
            return wanted
        kept = [past for past in self._delayed if past[0] > now_s - self.scale_down_delay_s]
        self._delayed = [*kept, (now_s, wanted)]
        return max(count for _, count in self._delayed)
