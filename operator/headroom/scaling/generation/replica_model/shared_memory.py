"""How much of what sequences hold in memory others hold as well: common prefixes are there once.

Twenty agents that continue one conversation, or all answers of one system prompt, share the blocks
of their prefix while they run at the same replica. That does not follow from what caches find: the
turns of one conversation find it too, one after the other. What the servers say they use tells it:

    shared = (contexts - tokens in use) / tokens found in caches      of running sequences

Worked: clumps of 20 requests of 4500 tokens, 3072 of them common, at eight replicas: 66 % of the
prompts are found in caches, and the contexts use 39 % of their tokens: 92 % of the found ones are
there for others already. Taken as held by each, memory seemed to carry half of what it does.

And lengths of prompts and answers, which are counted apart, do not tell that long prompts have long
answers. Contexts longer than independent lengths would make them do (`paired`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headroom.scaling.frozen import replace
from headroom.scaling.generation.replica_model.work import context_tokens
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import RequestShape

CONSTANT_S = 300.0
UNSURE = 0.1
"""Contexts are known to a tenth: what is within is not shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """Faded sums over all replicas; nothing until the servers say what they use."""

    used: float = 0.0
    """Tokens in use."""
    held: float = 0.0
    """Tokens in the contexts of running sequences, added up."""
    modelled: float = 0.0
    """The same where prompts say nothing of their answers."""

    def observe(
        self, samples: Iterable[PodSample], shape: RequestShape, elapsed_s: float
    ) -> SharedMemory:
        """Return the sums with these pages."""
        used, held, modelled, context = 0.0, 0.0, 0.0, context_tokens(shape)
        for one in samples:
            page = one.generation
            if page is None or page.kv_used_share is None or page.limits.kv_tokens is None:
                continue
            used += page.kv_used_share * page.limits.kv_tokens
            known, alike = page.context_tokens, one.running * context
            held += alike if known is None else known
            modelled += alike
        fade = math.exp(-max(0.0, elapsed_s) / CONSTANT_S)
        return SharedMemory(
            used=fade * self.used + used,
            held=fade * self.held + held,
            modelled=fade * self.modelled + modelled,
        )

    def paired(self, shape: RequestShape) -> RequestShape:
        """Return the shape with E[I O] as the contexts of running sequences show it.

        At least that of independent lengths, and within what they can be together (Cauchy and
        Schwarz). Without counted contexts those in use show it: what is shared would only be less.
        Worked: 10 % of the prompts have 12,000 tokens and answers of 600, the others 500 and 150:
        running sequences have 4600 tokens of context on average, independent lengths 1950.
        """
        if self.modelled <= 0.0:
            return shape
        ratio = max(self.held, self.used) / self.modelled / (1.0 + UNSURE)
        if ratio <= 1.0:
            return shape
        more = (ratio - 1.0) * context_tokens(shape) * shape.output_tokens
        most = math.sqrt(shape.prompt_tokens_squared * shape.output_tokens_squared)
        product = max(shape.prompt_output_product, min(most, shape.prompt_output_product + more))
        return replace(shape, prompt_output_product=product)

    def share(self, shape: RequestShape) -> float:
        """Return the share of the tokens found in caches that others hold as well, 0..1."""
        cached, context = shape.prompt_tokens - shape.computed_tokens, context_tokens(shape)
        if self.held <= 0.0 or cached <= 0.0:
            return 0.0
        spared = 1.0 - (1.0 + UNSURE) * self.used / self.held
        return min(1.0, max(0.0, spared * context / cached))
