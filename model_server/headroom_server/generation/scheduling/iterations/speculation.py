"""Chooses how many tokens to draft: as many as raise the tokens per second. Pure.

Drafts are computed like a prompt: each adds `b + e * context` to the iteration, while the constant
and the sequence's own decode are paid anyway. With acceptance p, k drafts yield on average
1 + p + ... + p^k tokens. In a large batch the constant is shared by many sequences, and drafting
stops paying. A sequence whose drafts were refused tries again now and then.
"""

from __future__ import annotations

from headroom_server.generation.scheduling.costs.iteration_cost import Features, IterationCost
from headroom_server.generation.scheduling.sequences import LiveSequence

WEIGHT = 0.15
"""Weight of one verified token in a sequence's acceptance."""
RECOVERY = 0.01
"""Per token without drafts, the estimate returns by this much to the prior."""
PRIOR = 0.5
UNKNOWN = 2
"""Drafts before the cost is known."""


def learn(sequence: LiveSequence, drafts: int, accepted: int) -> None:
    """Follow one verification: of `drafts` tokens in a row the first `accepted` were right."""
    weight = 1.0 - (1.0 - WEIGHT) ** accepted
    sequence.acceptance += weight * (1.0 - sequence.acceptance)
    if accepted < drafts:
        sequence.acceptance -= WEIGHT * sequence.acceptance


def recover(sequence: LiveSequence) -> None:
    """Forget a little of a bad acceptance."""
    sequence.acceptance += RECOVERY * max(0.0, PRIOR - sequence.acceptance)


class DraftCounts:
    """The best number of drafts by acceptance, for one iteration's batch."""

    __slots__ = ("_context", "_cost", "_most", "_share_s", "_step_s")

    def __init__(
        self,
        cost: IterationCost,
        decodes: int,
        context_tokens: int,
        most: int,
        step_s: float = 0.0,
    ) -> None:
        """Prepare for a batch; a draft model takes `step_s` to propose a token for all of it."""
        self._step_s = step_s / max(1, decodes)
        self._cost = cost
        self._most = most
        self._context = context_tokens / max(1, decodes)
        decode_s = cost.seconds(Features(0, decodes, context_tokens))
        self._share_s = decode_s / max(1, decodes)

    def best(self, acceptance: float) -> int:
        """Return how many tokens to draft; 0: none."""
        if not self._cost.known:
            return min(self._most, UNKNOWN)
        each_s = self._cost.prompt_s(1, int(self._context)) + self._step_s
        best, best_rate, tokens, chance = 0, 1.0 / max(self._share_s, 1e-12), 1.0, 1.0
        for count in range(1, self._most + 1):
            chance *= acceptance
            tokens += chance
            rate = tokens / max(self._share_s + count * each_s, 1e-12)
            if rate > best_rate:
                best, best_rate = count, rate
        return best
