"""Peers that hold one gauge at a target through the HPA controller or a rule like it.

Sources:
- HPA on KV usage and on waiting requests: kubernetes/kubernetes pkg/controller/podautoscaler with a
  Pods metric; defaults 15 s, tolerance 0.1, scale-down window 300 s. Targets as in the guides of
  vLLM production-stack and GKE: 0.8 of the cache, 5 waiting requests.
- production-stack KEDA: vllm-project/production-stack at a6c01db, helm values: trigger
  `vllm:num_requests_waiting` with threshold 5, poll 15 s, cooldown 360 s.
- KServe: kserve at aaac4e2, docs of LLM autoscaling by KEDA: `vllm:num_requests_running`,
  threshold 2 per replica.
- AIBrix: vllm-project/aibrix at e3e10f9, pkg/controller/podautoscaler/algorithm/apa.go: KV usage
  0.5 over 180 s, tolerances 0.1, at most doubled or halved, every 10 s, scale-down window 300 s.
- Ray Serve LLM: python/ray/serve/autoscaling_policy.py: 2 ongoing requests, up after 30 s, down
  after 600 s, mean over 30 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.policy import RateLimit
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa_controller import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    HpaBehavior,
    Rules,
    from_average,
    from_pods,
)
from headroom.simulator.autoscalers.peer import ready_pods, round_up, unready_count
from headroom.simulator.generation.autoscalers.peer import TokenPeer, existing, ready, used_share


@dataclass(kw_only=True)
class _ThroughHpa(TokenPeer):
    stabilization_s: float = 300.0
    tolerance: float = 0.1
    _behavior: HpaBehavior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin the HPA's memory."""
        down = Rules(stabilization_s=self.stabilization_s, rate=DEFAULT_DOWN.rate)
        self._behavior = HpaBehavior(policy=self.policy, up=DEFAULT_UP, down=down)


@dataclass(kw_only=True)
class HpaOnMemory(_ThroughHpa):
    """The mean KV usage of the pods at a target."""

    kind: ClassVar[str] = "hpa-kv"

    target: float = 0.8

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the controller's result for the Pods metric."""
        values = {page.pod: used_share(page) for page in view.samples}
        return self._behavior.settle(view.now_s, view.replicas, _pods(view, values, self.target))


@dataclass(kw_only=True)
class HpaOnWaiting(_ThroughHpa):
    """The mean number of waiting requests of the pods at a target."""

    kind: ClassVar[str] = "hpa-waiting"

    target: float = 5.0

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the controller's result for the Pods metric."""
        values = {page.pod: float(page.waiting) for page in view.samples}
        return self._behavior.settle(view.now_s, view.replicas, _pods(view, values, self.target))


def _pods(view: View, values: dict[str, float], target: float) -> int | None:
    return from_pods(
        values,
        ready=ready_pods(view),
        unready=unready_count(view),
        current=view.replicas,
        target=target,
        tolerance=0.1,
    )


@dataclass(kw_only=True)
class ProductionStack(_ThroughHpa):
    """KEDA on the sum of waiting requests."""

    kind: ClassVar[str] = "production-stack"

    stabilization_s: float = 360.0
    threshold: float = 5.0

    def evaluate(self, view: View) -> ScaleRequest:
        """Return KEDA's HPA for an AverageValue."""
        total = float(sum(page.waiting for page in view.samples))
        wanted = from_average(
            total, existing=existing(view), target=self.threshold, tolerance=self.tolerance
        )
        return self._behavior.settle(view.now_s, view.replicas, max(1, wanted))


@dataclass(kw_only=True)
class KServe(_ThroughHpa):
    """KEDA on the sum of running requests."""

    kind: ClassVar[str] = "kserve"

    threshold: float = 2.0

    def evaluate(self, view: View) -> ScaleRequest:
        """Return KEDA's HPA for an AverageValue."""
        total = float(sum(page.running for page in view.samples))
        wanted = from_average(
            total, existing=existing(view), target=self.threshold, tolerance=self.tolerance
        )
        return self._behavior.settle(view.now_s, view.replicas, max(1, wanted))


@dataclass(kw_only=True)
class Aibrix(TokenPeer):
    """The mean KV usage at 0.5, outside a tolerance, at most doubled or halved."""

    kind: ClassVar[str] = "aibrix"

    period_s: float = 10.0
    target: float = 0.5
    window_s: float = 180.0
    tolerance: float = 0.1
    stabilization_s: float = 300.0
    _behavior: HpaBehavior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin the memory of recommendations."""
        free = RateLimit(period_s=15.0, replicas=1000, percent=1000)
        self._behavior = HpaBehavior(
            policy=self.policy,
            up=Rules(stabilization_s=0.0, rate=free),
            down=Rules(stabilization_s=self.stabilization_s, rate=free),
        )

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the proportional rule's result."""
        self.history.add(view)
        current = view.replicas
        usage = self.history.mean(used_share, self.window_s) / max(1, ready(view))
        ratio = usage / self.target
        wanted = current
        if ratio > 1 + self.tolerance:
            wanted = min(round_up(current * ratio), 2 * current)
        elif ratio < 1 - self.tolerance:
            wanted = max(round_up(current * ratio), math.floor(current / 2), 1)
        return self._behavior.settle(view.now_s, current, wanted)


@dataclass(kw_only=True)
class RayServeLlm(TokenPeer):
    """Ongoing requests per replica at a target, after a delay per direction."""

    kind: ClassVar[str] = "ray-serve-llm"

    period_s: float = 5.0
    target: float = 2.0
    look_back_s: float = 30.0
    up_delay_s: float = 30.0
    down_delay_s: float = 600.0
    _direction: int = field(default=0, init=False, repr=False)
    _since_s: float = field(default=0.0, init=False, repr=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the last value once its direction has held for the delay."""
        self.history.add(view)
        current = view.replicas
        wanted = max(1, round_up(self.history.mean(_ongoing, self.look_back_s) / self.target))
        direction = (wanted > current) - (wanted < current)
        if direction != self._direction:
            self._direction, self._since_s = direction, view.now_s
        delay_s = self.up_delay_s if direction > 0 else self.down_delay_s
        if direction == 0 or view.now_s - self._since_s < delay_s:
            return ScaleRequest(replicas=current, reason="Delayed")
        self._direction = 0
        return ScaleRequest(replicas=wanted, reason="Delay over")


def _ongoing(page: PodSample) -> float:
    return float(page.waiting + page.running)
