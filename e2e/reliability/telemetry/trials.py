"""Draws a trial for a tree of sequences: replicas, true load, faults or lies."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headroom.scaling import Routing
from reliability.telemetry.figures import FULL_BATCH_RPS
from reliability.telemetry.lies import Lie
from reliability.telemetry.page_faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Values that are drawn once for a tree of sequences."""

    number: int
    replicas: int
    min_replicas: int
    max_replicas: int
    rate_rps: float
    hold_s: float
    """The scale-down window."""
    fault_share: float
    """Chance per pod and tick that an episode of a fault begins."""
    kinds: tuple[Fault | Lie, ...]
    liars: int = 0
    """Replicas whose pages are wrong; 0: each may have faults. The first ones."""
    routing: Routing = Routing.STICKY
    loud: bool = False
    """Whether each page shows that it lies, so that all replicas may lie."""

    @property
    def all_needed(self) -> bool:
        """Return whether one replica fewer could not carry the arrivals below the ceiling of 0.8.

        No observer can know that while all replicas report wrong figures in well-formed pages.
        """
        if self.liars == self.replicas and not self.loud:
            return False
        if self.liars == 0 and Fault.INFLATED in self.kinds:
            return False
        return self.needed_by_load

    @property
    def needed_by_load(self) -> bool:
        """Return the same for an observer who knows the arrivals."""
        return self.rate_rps > 0.8 * FULL_BATCH_RPS * (self.replicas - 1)


_ROUTINGS = (Routing.STICKY, Routing.LEAST_IN_FLIGHT, Routing.RANDOM, Routing.ROUND_ROBIN)


def draw(number: int) -> Trial:
    """Draw the trial of this number: two of three need all their replicas, one needs the fewest."""
    chance = random.Random(f"trial {number}")
    replicas = chance.randint(1, 3)
    carried_rps = 0.8 * FULL_BATCH_RPS
    needs_all = chance.random() < 2 / 3
    load = replicas - chance.uniform(0.1, 0.7) if needs_all else chance.uniform(0.0, 0.3)
    kinds: tuple[Fault | Lie, ...] = tuple(chance.sample(list(Fault), k=chance.randint(1, 4)))
    liars, loud = 0, False
    if number % 2:
        loud = chance.random() < 0.1
        kinds = tuple(chance.sample(list(Lie), k=chance.randint(1, 3)))
        replicas = chance.randint(2, 4)
        load = replicas - chance.uniform(0.1, 0.7) if needs_all else chance.uniform(0.0, 0.3)
        liars = 1 if chance.random() < 0.8 else replicas
        if loud:
            kinds, liars = (Lie.ABSURD,), replicas
    return Trial(
        number=number,
        replicas=replicas,
        min_replicas=1,
        max_replicas=chance.randint(replicas, 6),
        rate_rps=load * carried_rps,
        hold_s=chance.choice((4.0, 6.0, 10.0)),
        fault_share=chance.choice((0.0, 0.02, 0.1, 0.3)),
        kinds=kinds,
        liars=liars,
        routing=chance.choice(_ROUTINGS),
        loud=loud,
    )
