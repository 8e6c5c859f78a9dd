"""Fuzzers that run as short tests, and for FUZZ_S seconds each under `make fuzz`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

SECONDS = float(os.environ.get("FUZZ_S", "0"))


def fuzz(
    values: SearchStrategy[T], check: Callable[[T], object], *, examples: int, share: float = 1.0
) -> None:
    """Check this many values, and others for a share of the time; the smallest bad one raises."""

    @settings(
        max_examples=examples,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(values)
    def holds(value: T) -> None:
        check(value)

    end_s = time.monotonic() + share * SECONDS
    holds()
    while time.monotonic() < end_s:
        holds()
