"""Predicts which waiting requests are served before a new one, as by `waiting_line`. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting.tenant_charges import work_tokens
from headroom_server.generation.scheduling.waiting.waiting_line import WaitingLine


def served_before(
    sequence: LiveSequence, line: WaitingLine, state: SchedulerState
) -> Sequence[LiveSequence]:
    """Return the sequences of a line that a newcomer would be served after, if no other arrives."""
    tenant, priority = sequence.request.tenant, sequence.request.priority
    place_s, answer = sequence.place_s, state.lengths.expected()

    def charge(one: LiveSequence) -> float:
        if one.charged:
            return 0.0
        return work_tokens(len(one.tokens), min(one.left, answer))

    waiting: defaultdict[str, list[LiveSequence]] = defaultdict(list)
    for one in line:
        waiting[one.request.tenant].append(one)
    found = [one for one in waiting.pop(tenant, ()) if one.place_s <= place_s]
    turn = state.shares.of(tenant) + sum(map(charge, found))
    for name, others in waiting.items():
        account = state.shares.of(name)
        if len(others) > 1:  # hundreds of tenants have one each
            others.sort(key=attrgetter("place_s"))
        for one in others:
            before = (account, one.place_s, name) < (turn, place_s, tenant)
            level = one.request.priority
            if level < priority:
                before = before or one.place_s <= place_s
            elif level > priority:
                before = before and one.place_s <= place_s
            if before:
                found.append(one)
                account += charge(one)
    return found
