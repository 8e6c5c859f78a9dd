"""Restores values of before an overload in which replicas waited for a shared resource.

While a database is full, a batch takes the longer, the more replicas there are. That is not what a
replica takes once the overload has ended, and large batches, which show it, are not formed then.
Worked: batches of eight took 2.4 instead of 0.35 s at twelve replicas. Of 25/s, 5.7/s then seemed
to be all that one carries instead of 18, and twelve were kept for an hour.
"""

from __future__ import annotations

from headroom.scaling.demand.shared_limit import NO_SHARED_LIMIT, SharedLimit
from headroom.scaling.frozen import replace
from headroom.scaling.state.state import State


def with_shared_limit(state: State, shared: SharedLimit) -> State:
    """Return the state with the record after a tick.

    Once an overload under a verdict has ended, the cost and the risk level are those of before it:
    no replica could have kept its requests in time.
    """
    before, found = state.before_overload, state.shared_limit.most is not None
    state = replace(state, shared_limit=shared)
    if before is None:
        if not shared.levels:
            return state
        return replace(state, before_overload=(state.learner, state.risk))
    if shared is not NO_SHARED_LIMIT:
        return state
    if not found:
        return replace(state, before_overload=None)
    learner, risk = before
    return replace(state, before_overload=None, learner=learner.resumed(), risk=risk)
