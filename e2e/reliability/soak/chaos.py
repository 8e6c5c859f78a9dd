"""The faults of the soak, drawn from a seed: equal seeds give equal faults.

A quarter of the time has the leader killed every 30 s in its first half, and spares it in the
second, so that a process lives for long enough to show what it keeps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

QUARTERS = 4
KILL_EVERY_S = 30.0
PAUSE_S = 240.0
"""Mean time between two troubles."""
LONGEST_S = 45.0
REFUSED_SHARE = 0.002
"""Share of single requests, whatever else is going on."""


class Trouble(StrEnum):
    """Faults; all but the last two can hit all operators at the same time."""

    UNAVAILABLE = "the API answers 503"
    THROTTLED = "the API answers 429 and asks for a pause"
    HANGS = "the API does not answer"
    CONFLICTS = "every write gets a 409"
    DEAF = "watches deliver no events"
    SILENT = "no pod answers"
    SERVICE_GOES = "a service is deleted, and another created"
    EDITED = "a service is edited"


@dataclass(frozen=True, slots=True)
class Episode:
    """One trouble."""

    trouble: Trouble
    at_s: float
    lasts_s: float
    service: int
    """Service that it is about, where it is about one."""


def episodes(seed: int, seconds: float, services: int) -> Iterator[Episode]:
    """Draw what happens, one after the other; the last minute of all is quiet."""
    chance = random.Random(seed)
    at_s = 60.0
    while True:
        at_s += chance.expovariate(1.0 / PAUSE_S)
        lasts_s = chance.uniform(2.0, LONGEST_S)
        trouble, service = chance.choice(list(Trouble)), chance.randrange(services)
        if at_s + lasts_s > seconds - 120.0:
            return
        yield Episode(trouble, at_s, lasts_s, service)
        at_s += lasts_s


def is_deadly(at_s: float, seconds: float) -> bool:
    """Return whether leaders are killed at this moment."""
    quarter_s = seconds / QUARTERS
    return at_s % quarter_s < quarter_s / 2.0 and at_s < seconds - 120.0


def load_rps(seed: int, service: int, at_s: float) -> float:
    """Return the arrivals of a service: low and high by turns, each for some minutes."""
    chance = random.Random(f"{seed} {service} {int(at_s // 600)}")
    return chance.choice((0.0, 2.0, 9.0, 20.0, 35.0))
