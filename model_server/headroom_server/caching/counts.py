"""PURE. Where answers came from, and what is kept, as a scrape shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """Where an answer comes from."""

    MEMORY = "memory"
    STORE = "redis"
    FLIGHT = "flight"
    """The execution of an equal request that was under way."""
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Counts:
    """What a scrape shows."""

    by_source: Mapping[Source, int]
    """Answers; executions that were begun, under `DEVICE`."""
    size: int
    entries: int
    evicted: int
    store_failures: int | None
    """None without a second level."""
    store_asked: bool
