"""PURE. Which waiting requests are served before a new one: the order of `waiting_line`, ahead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting_line import WaitingLine
from headroom_server.generation.scheduling.work import work_tokens


def served_before(
    sequence: LiveSequence, line: WaitingLine, state: SchedulerState
) -> Sequence[LiveSequence]:
    """Return the sequences of a line that go before one that is not in it, if no other arrives."""
    tenant, priority = sequence.request.tenant, sequence.request.priority
    place_s, answer = sequence.place_s, state.lengths.expected()

    def charge(one: LiveSequence) -> float:
        return 0.0 if one.charged else work_tokens(len(one.tokens), min(one.left, answer))

    waiting: defaultdict[str, list[LiveSequence]] = defaultdict(list)
    for one in line:
        waiting[one.request.tenant].append(one)
    found = [one for one in waiting.pop(tenant, ()) if one.place_s <= place_s]
    turn = state.shares.of(tenant) + sum(map(charge, found)), tenant
    for name, others in waiting.items():
        account = state.shares.of(name)
        for one in sorted(others, key=attrgetter("place_s")):
            less, older = (account, name) < turn, one.place_s <= place_s
            if one.request.priority == priority:
                before = less
            elif one.request.priority < priority:
                before = less or older
            else:
                before = less and older
            if before:
                found.append(one)
                account += charge(one)
    return found
