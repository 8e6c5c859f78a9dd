"""`replace` for frozen values behaves as that of the standard library."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from headroom.scaling.frozen import replace
from headroom.scaling.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class _Two:
    first: int = 1
    second: int = 2

    def __post_init__(self) -> None:
        if self.second < 0:
            raise ValueError("second must be at least 0")


@dataclass(frozen=True, kw_only=True)
class _One:
    only: int = 1


def test_fields_that_are_not_named_stay_the_same_objects() -> None:
    before = State.initial()
    after = replace(before, ready=3)
    assert after.ready == 3
    assert all(
        getattr(after, field.name) is getattr(before, field.name)
        for field in dataclasses.fields(State)
        if field.name != "ready"
    )


def test_the_constructor_checks_the_value() -> None:
    assert replace(_Two(), second=5) == _Two(second=5)
    with pytest.raises(ValueError, match="at least 0"):
        replace(_Two(), second=-1)


def test_an_unknown_field_and_a_value_of_one_field_are_refused() -> None:
    with pytest.raises(TypeError, match="third"):
        replace(_Two(), third=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="several fields"):
        replace(_One(), only=2)
