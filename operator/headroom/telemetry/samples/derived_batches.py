"""Batches of a server that counts only requests and their execution time, by Little's law. Pure.

As many requests run at a time as their execution time is of the time in which they ran, and they
are spread over the slots; a batch takes as long as the requests in it. That time is at least as
long as an execution, however short the interval of the pages. Worked, requests of 5 s one at a time
and a page every 2 s: each ended on one page and ran for 5 s, not for the 2 s of its page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

_ROUNDING = 1.0 - 1e-9


class Batches(NamedTuple):
    """Executed batches."""

    batches: float = 0.0
    items: float = 0.0
    seconds: float = 0.0
    """Summed over batches."""

    def plus(self, more: Batches) -> Batches:
        """Return the sums of both."""
        return Batches(
            self.batches + more.batches, self.items + more.items, self.seconds + more.seconds
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time that no counted batch explains yet, and what ended in it."""

    lasted_s: float = 0.0
    ended: float = 0.0
    spent_s: float = 0.0
    """Execution time of those that ended, summed over them."""


def batches_of(
    span: Span, *, elapsed_s: float, ended: float, spent_s: float, largest: float, slots: int
) -> tuple[Batches, Span]:
    """Return the batches of the span and the `elapsed_s` after it, and the span that remains.

    There are none until as many requests have ended as run at a time. Where the time in the queue
    counts as execution time, the slots and the time that passed bound the seconds.
    """
    lasted_s = ran_s = span.lasted_s + elapsed_s
    if ended <= 0.0:
        return Batches(), replace(span, lasted_s=lasted_s)
    if span.ended <= 0.0:  # the server may have been idle before
        ran_s = max(elapsed_s, min(lasted_s, spent_s / ended))
    ended, spent_s = span.ended + ended, span.spent_s + spent_s
    running = min(spent_s / ran_s, slots * largest)
    if ended < _ROUNDING * running:
        return Batches(), Span(lasted_s=ran_s, ended=ended, spent_s=spent_s)
    size = max(min(running, ended) / slots, 1.0)
    seconds = min(spent_s / size, ran_s * slots)
    # What ended did so at some time after the page before, and the next may have begun then.
    remains = Span(lasted_s=min(lasted_s - seconds / slots, elapsed_s))
    return Batches(ended / size, ended, seconds), remains
