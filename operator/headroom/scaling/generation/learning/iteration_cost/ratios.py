"""Prior knowledge of engines: parts of the cost of an iteration, over that of a prompt token."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.generation.learning.iteration_cost.sums import TERMS
from headroom.scaling.values.tokens import IterationCost

USUAL_EXPERTS = 120.0
"""f k / (E b), where f / b is not stated: reading all experts against computing a token of k of
them. 114 for Qwen3 30B-A3B; a dense model's a / b, of which active experts are about half."""
STATED_ERROR, EXPERTS_ERROR = 0.3, 0.5
"""Relative errors of a stated f / b, and of the usual one."""
FIXED, PROMPT, SEQUENCE, CONTEXT = range(TERMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Prior of engines: other parts of the cost over b, the cost of a prompt token."""

    fixed_per_prompt: float = 294.0
    """a / b; 189 to 357."""
    sequence_per_prompt: float = 0.8
    """d / b; 0.6 to 0.9."""
    context_per_prompt: float = 1.8e-3
    """c / b; 0.5e-3 to 3.6e-3."""
    product_per_prompt: float = 4.5e-5
    """e / b, which counters cannot tell from b; 2.7e-5 to 6.2e-5."""
    experts_per_prompt: float = 0.0
    """f / b, where it is stated."""
    expert_share: float = 0.0
    """k / E, where it is stated."""
    errors: tuple[float, float, float] = (0.6, 0.5, 0.67)
    """Errors of the first three ratios, as shares of them."""

    @classmethod
    def of(cls, stated: IterationCost | None) -> Ratios:
        """Return the ratios of a stated cost; the usual ones without one."""
        usual = cls()
        if stated is None or not stated.prompt_token_s > 0.0:
            return usual
        per_prompt = 1.0 / stated.prompt_token_s
        return cls(
            fixed_per_prompt=per_prompt * stated.fixed_s or usual.fixed_per_prompt,
            sequence_per_prompt=per_prompt * stated.sequence_s or usual.sequence_per_prompt,
            context_per_prompt=per_prompt * stated.context_token_s or usual.context_per_prompt,
            product_per_prompt=per_prompt * stated.prompt_product_s or usual.product_per_prompt,
            experts_per_prompt=per_prompt * stated.experts_s,
            expert_share=stated.expert_share,
        )

    def experts(self, share: float) -> tuple[float, float]:
        """Return f / b of this share k / E, and its error."""
        if self.experts_per_prompt > 0.0:
            return self.experts_per_prompt, STATED_ERROR * self.experts_per_prompt
        return USUAL_EXPERTS / share, EXPERTS_ERROR * USUAL_EXPERTS / share

    @property
    def known(self) -> tuple[tuple[int, float, float], ...]:
        """Each term's ratio to b and its error."""
        ratios = self.fixed_per_prompt, self.sequence_per_prompt, self.context_per_prompt
        pairs = zip((FIXED, SEQUENCE, CONTEXT), ratios, self.errors, strict=True)
        return tuple((term, ratio, ratio * error) for term, ratio, error in pairs)
