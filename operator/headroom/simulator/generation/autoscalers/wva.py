"""llm-d's Workload Variant Autoscaler, saturation V2: KV memory and queue in tokens.

Source: llm-d-workload-variant-autoscaler at 2976e4e, internal/engines/saturation (default since
0.9.0): scale up so that demand over capacity falls to 0.85, down where one replica less stays
below 0.70; demand is tokens in memory and in queues, capacity is KV tokens, and pods that start
count as capacity. The optimizer runs every 30 s; an HPA with its defaults applies the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa_controller import HpaBehavior
from headroom.simulator.autoscalers.peer import round_up
from headroom.simulator.generation.autoscalers.peer import (
    TokenPeer,
    existing,
    generation,
    used_share,
)


@dataclass(kw_only=True)
class WvaSaturation(TokenPeer):
    """Between 0.70 and 0.85 of the KV memory."""

    kind: ClassVar[str] = "wva-v2"

    period_s: float = 30.0
    up: float = 0.85
    down: float = 0.70
    _behavior: HpaBehavior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin the HPA's memory."""
        self._behavior = HpaBehavior(policy=self.policy)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the replicas that bring saturation into the band."""
        memory = self.truth.service.engine.kv_tokens
        demand = sum(
            used_share(page) + (generation(page).waiting_tokens or 0.0) / memory
            for page in view.samples
        )
        capacity, wanted = existing(view), view.replicas
        if demand > self.up * capacity:
            wanted = round_up(demand / self.up)
        elif capacity > 1 and demand < self.down * (capacity - 1):
            wanted = capacity - 1
        return self._behavior.settle(view.now_s, view.replicas, wanted)
