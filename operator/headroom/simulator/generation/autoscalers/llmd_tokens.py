"""llm-d's experimental token-aware rule: tokens in flight over prefill throughput, and KV memory.

Source: llm-d/llm-d keda-epp-token-aware/README.md at 560d420:
max(ceil(in-flight tokens / V_P / 1.5 s), ceil(sum of KV usage / 0.8)), with V_P = chunk over the
median time to first token; KEDA polls every 15 s. In-flight tokens are prompts without first token.

Choice: V_P is the plant's own prefill throughput (one chunk over its iteration), as their
calibration at zero load measures it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa_controller import HpaBehavior
from headroom.simulator.autoscalers.peer import round_up
from headroom.simulator.generation.autoscalers.peer import TokenPeer, generation, used_share


@dataclass(kw_only=True)
class LlmdTokens(TokenPeer):
    """Prompts that wait over what a replica computes in 1.5 s, or KV memory at 80 %."""

    kind: ClassVar[str] = "llm-d-tokens"

    wait_s: float = 1.5
    kv_target: float = 0.8
    _behavior: HpaBehavior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin the HPA's memory."""
        self._behavior = HpaBehavior(policy=self.policy)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the larger of the two."""
        self.history.add(view)
        waiting = sum(generation(page).waiting_tokens or 0.0 for page in view.samples)
        used = sum(used_share(page) for page in view.samples)
        by_tokens = round_up(waiting / self._prompt_tokens_per_s() / self.wait_s)
        wanted = max(1, by_tokens, round_up(used / self.kv_target))
        return self._behavior.settle(view.now_s, view.replicas, wanted)

    def _prompt_tokens_per_s(self) -> float:
        engine = self.truth.service.engine
        chunk = engine.iteration_tokens
        return chunk / engine.cost.iteration_s(chunk, 0, 0, chunk * chunk / 2)
