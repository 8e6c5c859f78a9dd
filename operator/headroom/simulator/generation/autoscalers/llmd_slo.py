"""llm-d's SLO-aware rule with its two signals: the worse of P90 TTFT and P90 TPOT over targets.

Source: llm-d/llm-d guides/workload-autoscaling/README.slo-aware.md at d38c9f0: EPP histograms at a
5 s scrape, rules over 1 minute, clamp 2, mean of 45 s; thresholds 0.55 and 0.40; up
N + ceil(N (s R/N / 0.55 - 1)), down N - floor(N (1 - s/0.40)); HPA up max(100 %, 4) in 60 s with a
window of 30 s, down 1 in 120 s with a window of 180 s.

Choice: their P90 come from a trained predictor (EMA 0.6); here they are measured, times
`predictor_bias`, which is 1 unless a calibration sets it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa_controller import HpaBehavior, Rules, from_average
from headroom.simulator.autoscalers.llmd import DOWN_RATE, UP_RATE, outside_band
from headroom.simulator.generation.autoscalers.peer import (
    TokenPeer,
    existing,
    first_s,
    output_s,
    ready,
)


@dataclass(kw_only=True)
class LlmdTokenSlo(TokenPeer):
    """The worse latency over its target, through the guide's formula and an HPA."""

    kind: ClassVar[str] = "llm-d-slo"

    period_s: float = 15.0
    up_threshold: float = 0.55
    down_threshold: float = 0.40
    clamp: float = 2.0
    smoothing_s: float = 45.0
    window_s: float = 60.0
    predictor_bias: float = 1.0
    tolerance: float = 0.1
    _recorded: list[tuple[float, float]] = field(default_factory=list, init=False, repr=False)
    _behavior: HpaBehavior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin the HPA's memory."""
        self._behavior = HpaBehavior(
            policy=self.policy,
            up=Rules(stabilization_s=30.0, rate=UP_RATE),
            down=Rules(stabilization_s=180.0, rate=DOWN_RATE),
        )

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the HPA's result for the formula."""
        self.history.add(view)
        wanted = outside_band(
            self._signal(view),
            (self.down_threshold, self.up_threshold),
            provisioned=view.replicas,
            ready=ready(view),
        )
        recommendation = from_average(
            wanted, existing=existing(view), target=1.0, tolerance=self.tolerance
        )
        return self._behavior.settle(view.now_s, view.replicas, recommendation)

    def _signal(self, view: View) -> float:
        first = self.history.quantile(lambda g: g.first_token, 0.9, self.window_s) or 0.0
        output = self.history.quantile(lambda g: g.output_token, 0.9, self.window_s) or 0.0
        raw = max(first / first_s(self.targets), output / output_s(self.targets))
        kept = [past for past in self._recorded if past[0] > view.now_s - self.smoothing_s]
        self._recorded = [*kept, (view.now_s, min(self.predictor_bias * raw, self.clamp))]
        return sum(value for _, value in self._recorded) / len(self._recorded)
