"""Ray Serve's request autoscaling: ongoing requests per replica, applied after a delay.

Source: ray-project/ray, python/ray/serve/autoscaling_policy.py and serve/config.py: target 2
ongoing requests, look-back 30 s, metrics pushed every 10 s, upscale delay 30 s, downscale delay
600 s, factors 1. Ongoing means queued and running. A decision is applied once its direction held
for the whole delay; the last value is applied, not an aggregate. Replicas without a report count
as 0, so missing metrics look idle.

Choices: its loop runs every 0.1 s and counts decisions; here the direction is timed, every second.
Between two pushes only the end of the delay and pods becoming ready can change a decision, so an
action is at most 1 s late. At zero replicas a request would bypass the delay, but none is held.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer, of_ready, ready_pods, round_up
from headroom.simulator.compiled.plant_layout import Column


@dataclass(kw_only=True)
class RayServe(Peer):
    """ceil(running + factor x (total / target - running)) after a delay per direction."""

    kind: ClassVar[str] = "ray-serve"
    may_be_zero: ClassVar[frozenset[str]] = frozenset(
        {"target_batches", "upscale_delay_s", "downscale_delay_s"}
    )

    period_s: float = 1.0
    scrape_s: float = 10.0
    target_ongoing_requests: float = 2.0
    target_batches: float = 0.0
    """Ongoing requests per replica in batches; 0 uses `target_ongoing_requests`."""
    look_back_s: float = 30.0
    upscale_delay_s: float = 30.0
    downscale_delay_s: float = 600.0
    upscaling_factor: float = 1.0
    downscaling_factor: float = 1.0
    _direction: int = field(default=0, init=False, repr=False)
    _since_s: float = field(default=0.0, init=False, repr=False)
    _pushed_s: float | None = field(default=None, init=False, repr=False)
    _total: float = field(default=0.0, init=False, repr=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the target number of replicas."""
        running, total = len(ready_pods(view)), self._ongoing(view)
        if running == 0:
            wanted = max(round_up(self.upscaling_factor), view.replicas) if total > 0 else None
            return ScaleRequest(
                replicas=view.replicas if wanted is None else wanted, reason="NoReplicas"
            )
        return self._after_delay(view, self._bounded(running, total))

    def _ongoing(self, view: View) -> float:
        """Sum the mean ongoing requests per replica; updated by each push, 0 once it is too old."""
        pushed_s = view.metrics.scraped_s
        stale = pushed_s is None or view.now_s - pushed_s > self.look_back_s
        if stale or pushed_s != self._pushed_s:
            rates = view.metrics.rate(Column.IN_FLIGHT_S, view.now_s, self.look_back_s)
            self._total = sum(of_ready(rates, view).values())
            self._pushed_s = pushed_s
        return self._total

    def _bounded(self, running: int, total: float) -> int:
        batches = self.target_batches * self.places
        delta = total / (batches or self.target_ongoing_requests) - running
        factor = self.upscaling_factor if delta > 0 else self.downscaling_factor
        scaled = round_up(running + factor * delta)
        if scaled == running and round_up(running + delta) < running:
            scaled -= 1  # A factor below 1 must not block scale-down.
        return max(self.policy.min_replicas, min(self.policy.max_replicas, scaled))

    def _after_delay(self, view: View, wanted: int) -> ScaleRequest:
        current = view.replicas
        direction = (wanted > current) - (wanted < current)
        if direction != self._direction:
            self._direction, self._since_s = direction, view.now_s
        delay_s = self.upscale_delay_s if direction > 0 else self.downscale_delay_s
        if direction == 0 or view.now_s - self._since_s < delay_s:
            return ScaleRequest(replicas=current, reason="Delayed" if direction else "WithinTarget")
        self._direction = 0
        # Only the last replica may be removed.
        replicas = max(1, wanted) if direction < 0 and current > 1 else wanted
        return ScaleRequest(replicas=replicas, reason="Upscale" if direction > 0 else "Downscale")
