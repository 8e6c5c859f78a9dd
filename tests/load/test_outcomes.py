"""Judgement of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.outcomes import Outcome, input_of, is_right, of_status, question


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.OK),
        (429, Outcome.REFUSED),
        (503, Outcome.REFUSED),
        (504, Outcome.EXPIRED),
        (400, Outcome.FAILED),
        (500, Outcome.FAILED),
        (302, Outcome.FAILED),
    ],
)
def test_a_status_says_what_became_of_a_request(status: int, outcome: Outcome) -> None:
    assert of_status(status) is outcome


@given(st.integers(0, 10**6), st.integers(1, 64), st.integers(0, 10**6))
def test_the_sum_of_a_question_is_right_for_it_and_for_no_other(
    number: int, row_size: int, other: int
) -> None:
    row = question(number, row_size, "x")["inputs"][0]["data"]  # type: ignore[index]
    answer = {"outputs": [{"name": "sum", "data": [sum(row)]}]}
    assert is_right(number, row_size, answer)
    assert is_right(other, row_size, answer) == (other == number)


@pytest.mark.parametrize(
    "answer",
    [None, [], {}, {"outputs": []}, {"outputs": [{"data": []}]}, {"outputs": [{"data": ["6"]}]}],
)
def test_anything_else_is_wrong(answer: object) -> None:
    assert not is_right(0, 4, answer)


def test_the_input_is_read_from_the_metadata() -> None:
    assert input_of({"inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 4]}]}) == ("x", 4)


@pytest.mark.parametrize(
    "inputs",
    [
        None,
        [],
        [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
        [{"name": "x", "datatype": "FP64", "shape": [-1, 4, 4]}],
        [{"name": "x", "datatype": "FP64", "shape": [-1, 4]}] * 2,
    ],
)
def test_a_model_that_takes_something_else_is_refused(inputs: object) -> None:
    with pytest.raises(ValueError, match="one FP64 input"):
        input_of({"inputs": inputs})
