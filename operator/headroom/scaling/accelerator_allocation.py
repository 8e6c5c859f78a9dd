"""Divides the accelerators of a pool that has too few for all services, in a fixed order.

    1  running replicas within minReplicas, by priority
    2  class by class, the highest priority first: running replicas, then those that have been
       missing for the whole hold, floors before the rest
    3  replicas missing for a shorter time: floors by priority, then class by class, out of the
       free accelerators only

So a running replica is removed only for a higher class, only after the hold, and never below the
floor. Inside a class the next accelerator goes to the service with the smallest share of its
demand: max-min fairness (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2), for whole
replicas Adams' divisor method, in which more accelerators never give any service fewer replicas
(Balinski and Young, Fair Representation, 1982). A service that rejects the requests that it cannot
answer meets its SLO for about the share of requests that its replicas carry, and the first missing
replicas cost the least: equal shares then meet the SLO for the most requests.

A replica that does not fit into the free accelerators is skipped, and smaller ones after it may use
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Accelerators of one service, and those it would have without other services."""

    name: str
    priority: int = 0
    desired: int
    """Replicas that its own decision requests."""
    allocated: int = 0
    """Replicas that hold accelerators."""
    floor: int = 0
    """minReplicas: allocated replicas up to this number are never taken."""
    accelerators: int = 1
    """Per replica."""
    overdue: int = 0
    """Number of missing replicas that have been missing for the whole hold."""

    def __post_init__(self) -> None:
        """Raise ValueError for negative counts, and for replicas without an accelerator."""
        least = min(self.desired, self.allocated, self.floor, self.overdue)
        if least < 0 or self.accelerators < 1:
            raise ValueError(
                f"a demand must have replicas >= 0 and accelerators per replica >= 1; got {self}"
            )


def share(demands: Iterable[Demand], accelerators: int | None) -> dict[str, int]:
    """Return how many of its desired replicas each service may have, by name.

    `accelerators` is the size of the pool, allocated ones included; None if it is unknown, and then
    nothing is withheld.

    Worked, 6 in the pool: A (priority 10) has 2 and lacks 2 for the whole hold, B (0) has 4 and
    desires 5, floor 1. In order: A's 2, B's 1 within the floor, A's other 2, and 1 more for B: A 4,
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
    """The position of one replica in the order; fields compare from the first on."""

    step: int
    below: int
    """Priority, negated."""
    part: int
    satisfied: float
    """Share of its service's demand that comes before this replica."""
    name: str
    number: int
    accelerators: int


_STANDING_FLOOR, _BY_CLASS, _FREE_FLOOR, _FREE = range(4)
_STANDING, _MISSING_FLOOR, _MISSING = range(3)


def _places(demand: Demand) -> Iterator[_Place]:
    """Yield the positions of all replicas that a service desires."""
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
