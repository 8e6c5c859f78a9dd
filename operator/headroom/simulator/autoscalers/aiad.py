"""Additive increase, additive decrease (AIAD), the reactive baseline of Faro and INFaaS.

Source: Faro (EuroSys 2025, arXiv 2409.19488): one replica more after 30 s above the latency SLO,
one less after 5 minutes below it. Missing metrics restart both clocks and keep the replicas.

Choices: every 10 s (Faro's reactive interval) it reads the percentile of the last 30 s. A service
without answers counts as below the SLO if its queue is empty, and as above otherwise. Each step
restarts the clocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer
from headroom.simulator.compiled.plant_layout import Column


@dataclass(kw_only=True)
class Aiad(Peer):
    """+1 after `up_after_s` above the latency target, -1 after `down_after_s` below it."""

    kind: ClassVar[str] = "aiad"
    may_be_zero: ClassVar[frozenset[str]] = frozenset({"up_after_s", "down_after_s"})

    period_s: float = 10.0
    scrape_s: float = 5.0
    up_after_s: float = 30.0
    down_after_s: float = 300.0
    window_s: float = 30.0
    target_ratio: float = 1.0
    """Threshold as a ratio of the latency target."""
    _above: bool | None = field(default=None, init=False, repr=False)
    _since_s: float = field(default=0.0, init=False, repr=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return one more, one less, or the same."""
        above = self._is_above(view)
        if above is not self._above:
            self._above, self._since_s = above, view.now_s
        lasted_s = view.now_s - self._since_s
        if above is None:
            return ScaleRequest(replicas=view.replicas, reason="NoMetrics")
        if lasted_s < (self.up_after_s if above else self.down_after_s):
            return ScaleRequest(replicas=view.replicas, reason="Waiting")
        self._since_s = view.now_s
        if above:
            return ScaleRequest(replicas=view.replicas + 1, reason="Above")
        # No metric of a service without replicas could trigger a scale-up.
        return ScaleRequest(replicas=max(min(1, view.replicas), view.replicas - 1), reason="Below")

    def _is_above(self, view: View) -> bool | None:
        policy = self.policy
        waiting = view.metrics.instant(Column.WAITING)
        if not waiting:
            return None
        measured = view.metrics.quantile(policy.latency_percentile, view.now_s, self.window_s)
        if measured is None:
            return sum(waiting.values()) > 0
        return measured > self.target_ratio * policy.latency_target_s
