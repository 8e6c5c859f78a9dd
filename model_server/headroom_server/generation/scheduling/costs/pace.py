"""Limits the share of an iteration for prompts, so that running answers keep their pace. Pure.

Every iteration delays the answers that are being decoded. Without prompts it takes `base_s`.

- A promised time per token fills the iteration up to 90 % of it.
- Otherwise prompts get the share `LEAST_SHARE` of the time: an answer slows down by a third. The
  share grows with the head of the line: with how long it waits in relation to its own time
  (`STRETCH`), and with the time until first tokens are due.
- A short prompt that can be finished now may take as long as the iteration itself: that is less
  than another iteration would cost it.
- Time that is too little for a chunk is saved for the next iteration: where a token of a prompt
  takes long, as on a CPU, a share is a chunk every few iterations.
- Long prompts among usual ones get `LONG_SHARE` of an iteration's time without them, whatever
  waits; what the contexts of their answers cost is part of it.
"""

from __future__ import annotations

from typing import NamedTuple

PROMISE_USED = 0.9
LEAST_SHARE = 0.22
MOST_SHARE = 0.85
STRETCH = 5.0
"""A prompt alone at the least share takes this multiple of its own time."""
DUE_USED = 0.4
"""Backlogs are served within this share of the usual time to first tokens' deadlines."""
ALONE = 4.0
"""Without decodes, prompts take this multiple of an iteration's constant: 80 % of the time."""
LEAST_PROGRESS = 0.05
LONG_SHARE = 0.2
FINISHING_EXTRA = 0.5
"""Short prompts may prolong an iteration by this share of its decodes, whatever long ones take."""


class Pace(NamedTuple):
    """Seconds of an iteration for prompts."""

    partial_s: float
    """For prompts that continue later."""
    finishing_s: float
    """For all prompts, if the rest is for prompts that end."""

    def after(self, saved_s: float) -> Pace:
        """Return the pace with time that earlier iterations had left."""
        partial_s = self.partial_s + saved_s
        return Pace(partial_s, max(self.finishing_s, partial_s))

    def without(self, reserved_s: float) -> Pace:
        """Return the pace of the others if some of the time is reserved."""
        return Pace(self.partial_s - reserved_s, self.finishing_s - reserved_s)


def pace_of_usual(
    base_s: float,
    *,
    decoding: bool,
    promised_s: float | None,
    backlog_s: float,
    waited_s: float,
    own_s: float,
    due_within_s: float | None,
) -> Pace:
    """Return the seconds for prompts in an iteration that takes `base_s` without.

    `backlog_s`: prompts' time that waits; `waited_s` and `own_s` of the first of them;
    `due_within_s`: usual time from arrival to the first token's deadline.
    """
    if not decoding:
        return Pace(ALONE * base_s, 2.0 * ALONE * base_s)
    if promised_s is not None:
        room_s = max(LEAST_PROGRESS * base_s, PROMISE_USED * promised_s - base_s)
        return Pace(room_s, room_s)
    share = share_of_prompts(base_s, backlog_s, waited_s, own_s, due_within_s)
    partial_s = base_s * share / (1.0 - share)
    return Pace(partial_s, max(base_s, partial_s + FINISHING_EXTRA * base_s))


def pace_of_long(base_s: float, contexts_s: float, spent_s: float) -> Pace:
    """Return the pace of long prompts, in an iteration that has spent `spent_s` on others.

    Of `base_s`, `contexts_s` are for answers to long prompts.
    """
    usual_s = base_s - contexts_s
    room_s = max(LEAST_PROGRESS * usual_s, LONG_SHARE * usual_s - contexts_s)
    return Pace(spent_s + room_s, spent_s + room_s)


def share_of_prompts(
    base_s: float, backlog_s: float, waited_s: float, own_s: float, due_within_s: float | None
) -> float:
    """Return the share of time that prompts get without a promised time per token."""
    share = LEAST_SHARE * waited_s / (STRETCH * max(own_s, base_s))
    if due_within_s is not None:
        share = max(share, backlog_s / (DUE_USED * due_within_s))
    return min(MOST_SHARE, max(LEAST_SHARE, share))
