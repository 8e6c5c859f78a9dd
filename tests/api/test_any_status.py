"""The status of any decision fits the schema."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from api.decisions_for_status import SCHEMA, build
from headroom.scaling.values.decision import Counterfactual, Decision, Recommendation
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.demand import Demand, DemandKnown
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.signals import Freshness, Signal, Signals
from support.structural_objects import violations

COUNTS = st.integers(0, 10**6)
SECONDS = st.floats(0, 1e6) | st.just(math.inf)
SIGNALS = st.just(Signal(freshness=Freshness.MISSING)) | st.builds(
    Signal,
    freshness=st.sampled_from([Freshness.FRESH, Freshness.STALE]),
    value=SECONDS,
)
DECISIONS = st.builds(
    Decision,
    time_s=st.floats(0, 4e9),
    current=COUNTS,
    replicas=COUNTS,
    direction=st.sampled_from(Direction),
    reason=st.sampled_from(Reason),
    message=st.text(),
    recommendations=st.lists(
        st.builds(
            Recommendation,
            rule=st.sampled_from(Reason),
            replicas=COUNTS,
            detail=st.text(),
        ),
        max_size=6,
    ).map(tuple),
    counterfactuals=st.lists(
        st.builds(Counterfactual, replicas=COUNTS, latency_s=SECONDS, utilization=SECONDS),
        max_size=3,
    ).map(tuple),
    signals=st.builds(Signals, arrival_rps=SIGNALS, waiting=SIGNALS, latency_s=SIGNALS),
    utilization=st.none() | SECONDS,
    cost=st.none()
    | st.builds(
        CostModel,
        fixed_s=st.floats(0, 100),
        per_item_s=st.floats(0, 100),
        max_batch=st.integers(1, 512),
    ),
    cold_start_s=st.none() | st.floats(0, 1e5),
    demand=st.builds(
        Demand,
        known=st.sampled_from(DemandKnown),
        rate_rps=st.none() | SECONDS,
        at_most_rps=st.none() | SECONDS,
        detail=st.text(),
    ),
)


@given(DECISIONS)
def test_status_of_any_decision_fits_the_schema(decision: Decision) -> None:
    shown = build(decision=decision)
    assert list(violations(SCHEMA, shown)) == []
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
