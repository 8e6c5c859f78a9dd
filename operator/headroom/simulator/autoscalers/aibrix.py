"""AIBrix's pod autoscaler (APA): a proportional rule with tolerances and rates.

Source: vllm-project/aibrix, pkg/controller/podautoscaler/algorithm/apa.go (the rule),
autoscaler.go (max over metrics, pending-replica guard), context/context.go (defaults): reconcile
every 10 s, mean of 180 s, tolerances 0.1, at most x2 up and /2 down, scale-down window 300 s
(largest recommendation), immediate scale-up. Pods are scraped directly; failed scrapes are skipped,
and if all fail the replicas are kept. Pending replicas count as idle on scale-up and as at the
target on scale-down.

Mapping: the documented metric is KV-cache usage with target 0.5; here it is the share of a
replica's places in execution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer, of_ready, ready_pods, round_up
from headroom.simulator.compiled.plant_layout import Column


@dataclass(kw_only=True)
class AibrixApa(Peer):
    """ceil(N x value / target) outside the tolerance, within [N / 2, 2 N]."""

    kind: ClassVar[str] = "aibrix-apa"
    may_be_zero: ClassVar[frozenset[str]] = frozenset(
        {"up_tolerance", "down_tolerance", "stabilization_s"}
    )

    period_s: float = 10.0
    scrape_s: float = 10.0
    target_usage: float = 0.5
    """Share of a replica's places in execution."""
    window_s: float = 180.0
    up_tolerance: float = 0.1
    down_tolerance: float = 0.1
    max_scale_up_rate: float = 2.0
    max_scale_down_rate: float = 2.0
    stabilization_s: float = 300.0
    _samples: list[tuple[float, float]] = field(default_factory=list, init=False, repr=False)
    _recommendations: list[tuple[float, int]] = field(default_factory=list, init=False, repr=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the largest recommendation of the window, or a larger one immediately."""
        current = view.replicas
        running = of_ready(view.metrics.instant(Column.RUNNING), view)
        if not running or not current:
            return ScaleRequest(replicas=current, reason="NoMetrics")
        sample = sum(running.values()) / len(running) / self.places
        kept = [past for past in self._samples if past[0] > view.now_s - self.window_s]
        self._samples = [*kept, (view.now_s, sample)]
        usage = sum(value for _, value in self._samples) / len(self._samples)
        ready = min(len(ready_pods(view)), current)
        wanted = self._guard(self._rule(usage, current), usage, current, ready)
        since_s = view.now_s - self.stabilization_s
        recent = [past for past in self._recommendations if past[0] > since_s]
        self._recommendations = [*recent, (view.now_s, wanted)]
        if wanted >= current:
            return ScaleRequest(
                replicas=wanted, reason="Up" if wanted > current else "WithinTolerance"
            )
        held = min(current, max(count for _, count in self._recommendations))
        return ScaleRequest(replicas=held, reason="Down" if held < current else "Stabilized")

    def _rule(self, usage: float, current: int) -> int:
        ratio = usage / self.target_usage
        proportional = round_up(current * ratio)
        if ratio > 1 + self.up_tolerance:
            return min(proportional, math.ceil(self.max_scale_up_rate * current))
        if ratio < 1 - self.down_tolerance:
            return max(proportional, math.floor(current / self.max_scale_down_rate))
        return current

    def _guard(self, wanted: int, usage: float, current: int, ready: int) -> int:
        """Adjust for pending replicas, within the recommendation and in its direction."""
        pending = current - ready
        if not pending or wanted == current:
            return wanted
        if wanted > current:
            adjusted = round_up(usage * ready / self.target_usage)
            return min(wanted, max(adjusted, current))
        adjusted = round_up(usage * ready / self.target_usage + pending)
        return max(wanted, min(adjusted, current))
