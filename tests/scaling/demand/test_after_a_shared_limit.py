"""The learned cost after an overload in which replicas waited for what they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling.demand.shared_limit import NO_SHARED_LIMIT, Level, SharedLimit
from headroom.scaling.evidence.shared_limits import with_shared_limit
from headroom.scaling.promise.risk import Risk
from headroom.scaling.state.state import State
from scaling.cost.ran_batches import KNOWN, TRUE, ran

OVERLOAD = SharedLimit(levels={2: Level(0.0, 40.0, 1)})
FOUND = replace(OVERLOAD, most=7, detail="they wait", found=(7, Level(60.0, 40.0, 4)))
SLOWER = KNOWN.observe(ran((100.0, 1.0, 2.1)), 2.0, TRUE)
BEFORE = State(learner=KNOWN)
LATER = replace(with_shared_limit(BEFORE, OVERLOAD), learner=SLOWER, risk=Risk(level=1.0))


@pytest.mark.parametrize(
    ("records", "kept"),
    [
        pytest.param((FOUND, NO_SHARED_LIMIT), False, id="they waited for a database"),
        pytest.param((FOUND,), True, id="the overload goes on"),
        pytest.param((NO_SHARED_LIMIT,), True, id="no limit was found"),
        pytest.param((FOUND, OVERLOAD, NO_SHARED_LIMIT), True, id="more replicas have helped"),
        pytest.param((FOUND, replace(FOUND, levels={}), NO_SHARED_LIMIT), False, id="long"),
    ],
)
def test_cost_and_risk_are_those_of_before_the_overload(
    records: tuple[SharedLimit, ...], kept: bool
) -> None:
    state = LATER
    for record in records:
        state = with_shared_limit(state, record)
    assert state.risk.level == (1.0 if kept else 0.0)
    assert state.learner.bins == (SLOWER if kept else KNOWN).bins
    assert (state.before_overload is None) is (records[-1] is NO_SHARED_LIMIT)


def test_next_overload_is_compared_with_what_preceded_it() -> None:
    state = LATER
    for record in (NO_SHARED_LIMIT, OVERLOAD, FOUND, NO_SHARED_LIMIT):
        state = with_shared_limit(state, record)
    assert state.learner.bins == SLOWER.bins


def test_learner_compares_no_executions_with_those_of_before_a_gap() -> None:
    learner = KNOWN
    for _ in range(6):
        learner = learner.observe(
            ran((10.0, 1.0, 0.21)) + ran((10.0, 1.0, 0.21), replica="b"), 2.0, TRUE
        )
    resumed = learner.resumed()
    assert learner.variation.latest.keys() == {"a", "b"}
    assert not resumed.variation.latest
    assert not resumed.speeds.recent
    assert resumed.bins == learner.bins
