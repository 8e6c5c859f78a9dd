"""Tokens per second and use of the KV memory, over all pods and the last minute. Pure.

What was counted later than now is of a clock that stepped back, and is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.token_decision import GenerationMeasurement

WINDOW_S = 60.0
_Counters = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRates:
    """Generated and computed tokens, tick by tick."""

    last: Mapping[str, _Counters] = field(default_factory=dict)
    """Tokens generated and prompt tokens computed at the newest page of each pod."""
    added: tuple[tuple[float, float, float], ...] = ()
    """(time, generated, computed) of each tick, oldest first; the first is a baseline."""
    kv_used_share: float | None = None
    """Largest used share of a replica."""
    known: tuple[bool, bool] = (False, False)
    """Whether the servers count generated and computed tokens."""

    def observe(self, samples: Sequence[PodSample], now_s: float) -> TokenRates:
        """Return the rates with the newest page of each pod; nothing where none generates."""
        pages = {one.pod: one.generation for one in samples if one.generation is not None}
        if not pages:
            return NO_TOKENS if not self.last else self
        last = {
            pod: (one.generated_tokens, one.computed_prompt_tokens) for pod, one in pages.items()
        }
        generated = sum(_grown(self.last.get(pod), one, 0) for pod, one in last.items())
        computed = sum(_grown(self.last.get(pod), one, 1) for pod, one in last.items())
        kept = tuple(one for one in self.added if now_s - WINDOW_S < one[0] <= now_s)
        shares = [one.kv_used_share for one in pages.values() if one.kv_used_share is not None]
        return TokenRates(
            last=last,
            added=(*kept, (now_s, generated, computed)),
            kv_used_share=max(shares, default=None),
            known=(
                any(one.generated_tokens is not None for one in pages.values()),
                any(one.computed_prompt_tokens is not None for one in pages.values()),
            ),
        )

    @property
    def measurement(self) -> GenerationMeasurement | None:
        """Return the measured rates; None for a service that generates nothing."""
        if not self.last:
            return None
        elapsed_s = self.added[-1][0] - self.added[0][0]
        rates: list[float | None] = [None, None]
        for place in (0, 1):
            if self.known[place] and elapsed_s > 0.0:
                rates[place] = sum(one[1 + place] for one in self.added[1:]) / elapsed_s
        return GenerationMeasurement(
            generated_tokens_per_s=rates[0],
            prompt_tokens_per_s=rates[1],
            kv_used_share=self.kv_used_share,
        )


NO_TOKENS = TokenRates()


def _grown(before: _Counters | None, now: _Counters, place: int) -> float:
    """Return the tokens since the page before; a count that fell began at zero again."""
    value, earlier = now[place], None if before is None else before[place]
    if value is None or earlier is None:
        return 0.0
    return value - earlier if value >= earlier else value
