"""`replace` for frozen values behaves as that of the standard library."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import pytest

from headroom.scaling.frozen import replace
from headroom.scaling.state.state import State


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


@dataclass(frozen=True, kw_only=True)
class _Known:
    first: int = 1
    second: int = 2

    @cached_property
    def total(self) -> int:
        return self.first + self.second


@dataclass(frozen=True, kw_only=True)
class _Plain:
    first: int = 1
    second: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slots:
    first: int = 1
    second: int = 2


def test_a_value_that_was_computed_is_not_copied() -> None:
    known = _Known()
    assert known.total == 3
    assert replace(known, second=5).total == 6


@pytest.mark.parametrize("kind", [_Plain, _Slots])
def test_values_with_and_without_slots_are_copied(kind: type) -> None:
    before = kind(first=3)
    assert replace(before, second=5) == kind(first=3, second=5)
    assert before == kind(first=3)
    with pytest.raises(TypeError, match="third"):
        replace(before, third=3)
