"""Share of the memory that sequences have in common: common prefixes are stored once.

Twenty agents that continue one conversation, or all answers of one system prompt, share the blocks
of their prefix while they run at the same replica. That does not follow from what caches find: the
turns of one conversation find it too, one after the other. What the servers say they use shows it:

    shared = (contexts - tokens in use) / tokens found in caches      of running sequences

Worked: clumps of 20 requests of 4500 tokens, 3072 of them common, at eight replicas: 66 % of the
prompts are found in caches, and the contexts use 39 % of their tokens: 92 % of the found ones are
there for others already. Taken as held by each, memory seemed to carry half of what it does.

And lengths of prompts and answers, which are counted apart, do not tell that long prompts have long
answers, or short ones. Contexts longer than independent lengths would make them do, and memory in
use that is less than they would hold, whatever of it were shared (`paired`).
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
LATEST_S = 30.0
"""Over which memory in use counts where it is more: a mix that has changed shows at once."""
LEAST_SEEN = 1000.0
"""Looks at running sequences before they may show less than independent lengths: young or few ones
hold less by chance. Worked: five replicas with 20 each, every 4 s: 40 s."""
FULL = 0.9
"""Share of the memory above which requests that wait do so for it."""
UNSURE = 0.1
"""Contexts are known to a tenth: what is within is not shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """Faded sums over all replicas; zero until the servers report their memory in use."""

    used: float = 0.0
    """Tokens in use."""
    held: float = 0.0
    """Tokens in the contexts of running sequences, added up."""
    modelled: float = 0.0
    """The same where prompts say nothing of their answers."""
    running: float = 0.0
    """Sequences."""
    apart: float = 0.0
    """Tokens in use; at least those modelled where a server does not say what its cache finds."""
    latest: tuple[float, float] = (0.0, 0.0)
    """The latter and those modelled, over LATEST_S."""

    def observe(
        self, samples: Iterable[PodSample], shape: RequestShape, elapsed_s: float
    ) -> SharedMemory:
        """Return the sums with these pages."""
        used, held, apart, running, context = 0.0, 0.0, 0.0, 0.0, context_tokens(shape)
        for one in samples:
            page = one.generation
            if page is None or page.kv_used_share is None or page.limits.kv_tokens is None:
                continue
            if one.waiting > 0 and page.kv_used_share > FULL:
                return self  # what runs is not what arrives: short ones wait for long ones
            here = page.kv_used_share * page.limits.kv_tokens
            known, alike = page.context_tokens, one.running * context
            used += here
            held += alike if known is None else known
            apart += max(here, alike) if page.cached_prompt_tokens is None else here
            running += one.running
        modelled = running * context
        fade = math.exp(-max(0.0, elapsed_s) / CONSTANT_S)
        sooner = math.exp(-max(0.0, elapsed_s) / LATEST_S)
        return SharedMemory(
            used=fade * self.used + used,
            held=fade * self.held + held,
            modelled=fade * self.modelled + modelled,
            running=fade * self.running + running,
            apart=fade * self.apart + apart,
            latest=(sooner * self.latest[0] + apart, sooner * self.latest[1] + modelled),
        )

    def paired(self, shape: RequestShape, unended: float = 0.0) -> RequestShape:
        """Return the shape with E[I O] as the contexts of running sequences show it.

        What they hold beyond that are answers longer than those that have ended, by which E[O^2] is
        more, at most by `unended`: where none run, caches count as in use.
        Within what they can be together (Cauchy and Schwarz). Without counted contexts those in use
        show that it is more: what is shared would only be less. That it is less shows where even
        with all tokens found in caches, which others may hold, less is in use.
        Worked: 10 % of the prompts have 12,000 tokens and answers of 600, the others 500 and 150:
        running sequences have 4600 tokens of context on average, independent lengths 1950. Half of
        9000 with 80 and half of 300 with 1500: 1950 on average, independent lengths 5600.
        """
        if self.modelled <= 0.0:
            return shape
        alike, context = shape.prompt_output_product, context_tokens(shape)
        ratio = max(self.held, self.used) / self.modelled
        if unended > 0.0:  # they grow: the memory of minutes ago is less
            ratio = max(ratio, self._apart_share)
        ratio /= 1.0 + UNSURE
        if ratio > 1.0:
            more = (ratio - 1.0) * context * shape.output_tokens
            most = math.sqrt(shape.prompt_tokens_squared * shape.output_tokens_squared)
            paired = max(alike, min(most, alike + more))
            longer = min(unended, 2.0 * (alike + more - paired))
            squared = shape.output_tokens_squared + longer
            return replace(shape, prompt_output_product=paired, output_tokens_squared=squared)
        ratio = (self._apart_share + _cached(shape) / context) * (1.0 + UNSURE)
        if ratio >= 1.0 or self.running < LEAST_SEEN:
            return shape
        less = (1.0 - ratio) * context * shape.output_tokens
        return replace(shape, prompt_output_product=max(_least_product(shape), alike - less))

    @property
    def _apart_share(self) -> float:
        """The tokens in use over those modelled: of minutes, or of seconds if that is more."""
        apart, modelled = self.latest
        return max(self.apart / self.modelled, apart / modelled if modelled > 0.0 else 1.0)

    def share(self, shape: RequestShape) -> float:
        """Return the share of the tokens found in caches that others hold as well, 0..1."""
        cached, context = _cached(shape), context_tokens(shape)
        if self.held <= 0.0 or cached <= 0.0:
            return 0.0
        held = self.held
        if shape.prompt_output_product < shape.prompt_tokens * shape.output_tokens:
            held = min(held, self.running * context)  # what is paired is not shared as well
        spared = 1.0 - (1.0 + UNSURE) * self.used / held
        return min(1.0, max(0.0, spared * context / cached))


def _cached(shape: RequestShape) -> float:
    return shape.prompt_tokens - shape.computed_tokens


def _least_product(shape: RequestShape) -> float:
    """Return the least E[I O] of such lengths: their covariance is bounded by their variances."""
    prompt, output = shape.prompt_tokens, shape.output_tokens
    variances = (shape.prompt_tokens_squared - prompt**2) * (
        shape.output_tokens_squared - output**2
    )
    return max(output, prompt * output - math.sqrt(max(0.0, variances)))
