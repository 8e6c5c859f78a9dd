"""The checkpoint of a learned cost: size, values that are read, and values that are refused."""

from __future__ import annotations

import json
import math

import pytest

from headroom.scaling import State
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.latency.correction import Correction
from scaling.cost.observed_batches import SILENT, fitted, noisy, taught


def test_checkpoint_below_a_kibibyte_restores_what_was_learned() -> None:
    learner = taught(CostLearner(), SILENT, noisy(0.6, 300, seed=5))
    state = State(learner=learner, correction=Correction(logarithm=math.log(1.7), learned_s=900.0))
    written = json.dumps(state.to_checkpoint())
    restored = State.from_checkpoint(json.loads(written))
    assert len(written) < 1024
    assert restored.correction.factor == pytest.approx(1.7)
    assert fitted(restored.learner).batch_s(8) == pytest.approx(fitted(learner).batch_s(8))
    assert fitted(restored.learner).cv == pytest.approx(fitted(learner).cv, rel=1e-4)


GOOD: dict[str, object] = {
    "version": 3,
    "cost": [[0, 10.0, 10.0, 10.0, 2.1, 2.1]],
    "variation": [4.0, 16.0],
    "correction": [1.0],
    "coldStarts": [42.0],
}


@pytest.mark.parametrize("factor", [0.6, 4.0])
def test_checkpoint_with_extreme_values_is_read(factor: float) -> None:
    more = {"correction": [factor], "coldStarts": [0.0, *range(1, 26)]}
    state = State.from_checkpoint(GOOD | more)
    assert state.correction.factor == pytest.approx(factor)
    assert state.cold_starts.seconds == tuple(range(6, 26))
    assert State.from_checkpoint(GOOD | {"coldStarts": [0.0]}).cold_starts.seconds == (0.0,)


def test_checkpoint_with_valid_values_is_read() -> None:
    state = State.from_checkpoint(GOOD)
    assert fitted(state.learner).batch_s(1) == pytest.approx(0.21, rel=0.01)
    assert fitted(state.learner).cv == 0.5
    assert State.from_checkpoint(GOOD | {"variation": [0.0, 0.0]}).learner.variation.cv == 0.0
    assert state.cold_starts.p90_s == 42.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version must be 3; got 2"),
        ({"version": None}, "version must be 3; got None"),
        ({"cost": None}, "cost must be a list of lists; got None"),
        ({"cost": [3]}, "cost must be a list of numbers; got 3"),
        ({"cost": [[]]}, r"cost must hold a bin and 5 sums; got \[\]"),
        ({"cost": [[1, 2]]}, r"cost must hold a bin and 5 sums; got \[1, 2\]"),
        ({"cost": [[0.5, 1, 1, 1, 1, 1]]}, r"must hold a bin and 5 sums; got \[0.5, "),
        ({"cost": [[0, 1e17, 1e17, 1e17, 1.0, 1.0]]}, "must hold sums of batches"),
        ({"cost": [[0, 1.0, 1.0, 1e17, 1.0, 1.0]]}, "must hold sums of batches"),
        ({"cost": [[0, 1.0, 1.0, 1.0, 1e17, 1.0]]}, "must hold sums of batches"),
        ({"cost": [[0, 1.0, 1.0, 1.0, 1.0, 1e17]]}, "must hold sums of batches"),
        ({"cost": [[65, 1.0, 1.0, 1.0, 1.0, 1.0]]}, "must hold sums of batches"),
        ({"variation": [1e17, 1.0]}, "must hold squares of at most 100 each"),
        ({"coldStarts": [1e17]}, "coldStarts must hold seconds <= 86400"),
        ({"promise": [0.0, 0.0, 0.0, 1e17]}, "late <= ended <= 9"),
        ({"cost": [[0, 1, 1, 1, 0, 1]]}, r"must hold sums > 0; got \[0, 1, 1, 1, 0, "),
        ({"cost": [[0, 0.0, 1, 1, 1, 1]]}, "must hold sums > 0"),
        ({"cost": [[0, 1, 1, 1, -1, 1]]}, r"cost must hold numbers from 0 to 1e\+24; got -1"),
        ({"cost": [[0, 1, 1, 1, "1", 1]]}, "cost must hold numbers; got '1'"),
        ({"variation": None}, "variation must be a list of numbers; got None"),
        ({"variation": [1.0]}, r"must hold a sum of squares and how many .*; got \[1.0\]"),
        (
            {"variation": [1.0, 0.0]},
            r"must hold a sum of squares and how many .*; got \[1.0, 0.0\]",
        ),
        ({"variation": [-1.0, 2.0]}, r"variation must hold numbers from 0 to 1e\+24; got -1"),
        ({"correction": 1.0}, "correction must be a list of numbers; got 1.0"),
        ({"correction": []}, r"correction must hold one number in 0.6..4; got \[\]"),
        ({"correction": [1.0, 1.0]}, r"correction must hold one number in 0.6..4; got \[1.0, "),
        ({"correction": [0.5]}, r"correction must hold one number in 0.6..4; got \[0.5\]"),
        ({"correction": [4.5]}, r"correction must hold one number in 0.6..4; got \[4.5\]"),
        ({"correction": [math.nan]}, r"correction must hold numbers from 0 to 1e\+24; got nan"),
        ({"correction": [True]}, "correction must hold numbers; got True"),
        ({"coldStarts": [math.inf]}, r"coldStarts must hold numbers from 0 to 1e\+24; got inf"),
        ({"cost": [[0, 1, 1, 1e200, 1, 1]]}, r"cost must hold numbers from 0 to 1e\+24; got 1e"),
    ],
)
def test_checkpoint_with_an_invalid_value_is_rejected_with_rule_and_value(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        State.from_checkpoint(GOOD | change)
