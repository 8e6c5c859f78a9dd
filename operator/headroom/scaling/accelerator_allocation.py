"""Who gets the accelerators of a pool that has too few for all: a fixed order, served in full.

    1  replicas that stand and are within minReplicas, by priority
    2  class by class, the highest priority first: what stands, then what has been missing for the
       whole hold, floors before the rest
    3  what is missing and has not been for that long: floors by priority, then class by class; it
       gets what nobody holds

So a replica that stands goes only for a higher class, only after the hold, and never below the
floor. Inside a class the next accelerator is for the service with the smallest share of what it
wants: max-min fairness (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2), of whole
replicas Adams' divisor method, in which more to share never gives anybody fewer (Balinski and
Young, Fair Representation, 1982). A service that refuses what it cannot answer keeps about the
promises that its share of the replicas carries, and the first replicas missing cost the fewest:
equal shares then keep the most promises.

A replica that does not fit what is left is passed over, and smaller ones behind it may use that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one service has, and what it would have if it were alone."""

    name: str
    priority: int = 0
    desired: int
    """Replicas that its own decision asks for."""
    allocated: int = 0
    """Replicas that hold their accelerators."""
    floor: int = 0
    """Standing replicas that nobody takes: minReplicas."""
    accelerators: int = 1
    """Per replica."""
    overdue: int = 0
    """Of the missing ones, how many have been so for the whole hold."""

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that count nothing."""
        least = min(self.desired, self.allocated, self.floor, self.overdue)
        if least < 0 or self.accelerators < 1:
            raise ValueError(
                f"a demand counts replicas from 0 and accelerators per replica from 1: {self}"
            )


def share(demands: Iterable[Demand], accelerators: int | None) -> dict[str, int]:
    """Return how many of the replicas that it wants each service may have, by name.

    `accelerators` are all of the pool, those held included; None where that is not known: nothing
    is withheld then.

    Worked, 6 in the pool: A (priority 10) has 2 and lacks 2 for the whole hold, B (0) has 4 and
    wants 5, floor 1. In order: A's 2, B's 1 within the floor, A's other 2, and 1 more for B: A 4,
    B 2.
    """
    demands = tuple(demands)
    if accelerators is None:
        return {demand.name: demand.desired for demand in demands}
    allocations = {demand.name: 0 for demand in demands}
    left = accelerators
    for place in sorted(place for demand in demands for place in _places(demand)):
        if place.accelerators <= left:
            left -= place.accelerators
            allocations[place.name] += 1
    return allocations


class _Place(NamedTuple):
    """One replica's place in the order; fields compare from the first on."""

    step: int
    below: int
    """Priority, negated."""
    part: int
    satisfied: float
    """Share of what its service wants that comes before this replica."""
    name: str
    number: int
    accelerators: int


_STANDING_FLOOR, _BY_CLASS, _FREE_FLOOR, _FREE = range(4)
_STANDING, _MISSING_FLOOR, _MISSING = range(3)


def _places(demand: Demand) -> Iterator[_Place]:
    """Yield the places of all replicas that a service wants."""
    overdue = demand.allocated + demand.overdue
    for number in range(1, demand.desired + 1):
        within = number <= demand.floor
        if number <= demand.allocated:
            step, part = (_STANDING_FLOOR if within else _BY_CLASS), _STANDING
        elif number <= overdue:
            step, part = _BY_CLASS, (_MISSING_FLOOR if within else _MISSING)
        else:
            step, part = (_FREE_FLOOR if within else _FREE), _MISSING
        yield _Place(
            step,
            -demand.priority,
            part,
            (number - 1) / demand.desired,
            demand.name,
            number,
            demand.accelerators,
        )
