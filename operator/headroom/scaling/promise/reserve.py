"""The reserve: spare replicas for a surge that nothing announces, where replicas start slowly.

What arrives above the capacity while replicas start is late, whatever is decided then. A start that
takes longer than the error budget of an hour lasts lets one surge break the promise, so that spare
replicas have to run before it. How many grows with the start over the budget and with the square
root of the service, and it is rounded: the only replica of a service is not doubled.

    replicas = round(R + beta sqrt(R)),   beta = min(0.35, 0.21 start / budget)

Worked, with 5 % of an hour as the budget (180 s): a start of 300 s keeps one spare replica from 3
to 18, a start of 100 s from 19 on, a start of 30 s none below 200. It fades over hours in time,
which show that the load has no such surges, and returns when an hour breaks its budget.

A generating service, whose replicas are few, counts the share that is left of the budget, in the
square, where a start is shorter than the budget: an unspent one pays for a surge, half of it for
hardly any,

    beta = min(1, 0.3 start / (budget left^2))

A longer start spends the budget at once: what is kept after it comes too late, and the reserve is
that of other services. It is added to what carries the usual rate: a peak by chance is what the
reserve is for, and asks for no further replica. Worked: five replicas with a start of 100 s keep
one spare replica once 14 % of the budget are spent and two from half on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.promise.error_budget import ErrorBudget
from headroom.scaling.values.tuning import HOUR_S

PER_BUDGET = 0.21
"""beta where a start takes as long as the error budget of an hour lasts."""
MOST = 0.35
"""The largest beta."""
PER_LEFT = 0.3
MOST_OF_GENERATING = 1.0
"""The same for a generating service."""
LEAST = 2
"""Replicas of a generating service that are worth a spare one."""
LEAST_LEFT = 0.05
"""Share of the budget that counts as left at least: an hour that has spent more is as bad."""
USUAL_S = 300.0
"""Time of the usual rate."""
FADE_S = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """A generating service over the last minutes, and over the hour."""

    rate_rps: float
    """Mean arrivals of `USUAL_S`."""
    spent: float
    """Share of the hour's error budget that is spent, at least 0."""

    @classmethod
    def of(cls, rate_rps: float, hour_rps: float, budget: ErrorBudget, allowed: float) -> Usual:
        """Return it from the mean rates of `USUAL_S` and of the hour, whose budget it is."""
        hour_requests = max(budget.ended, HOUR_S * hour_rps)
        spent = budget.late / (allowed * hour_requests) if hour_requests > 0.0 else 0.0
        return cls(rate_rps=rate_rps, spent=spent)

    def left(self, allowed: float) -> float:
        """Return the seconds of an hour in which everything may still be late."""
        return allowed * HOUR_S * self.share_left

    @property
    def share_left(self) -> float:
        """Return the share of the budget that is left, above 0 to 1."""
        return max(LEAST_LEFT, 1.0 - self.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Remaining reserve, 0..1."""

    remaining: float = 1.0

    def observe(self, budget: ErrorBudget, allowed: float, elapsed_s: float) -> Reserve:
        """Return the reserve after a tick; `allowed` is the share of requests that may be late."""
        if budget.late_share is not None and budget.late_share >= allowed:
            return Reserve()
        faded = math.exp(-budget.unspent(allowed) * elapsed_s / FADE_S)
        return Reserve(remaining=self.remaining * faded)

    def replicas(
        self, carrying: int, start_s: float, allowed: float, usual: Usual | None = None
    ) -> int:
        """Return the replicas with the reserve, where `carrying` carry the counted arrivals.

        `start_s` is a usual start, or how long the first one has taken so far; `usual` is None
        unless the service generates, and starts are shorter than the budget.
        """
        if usual is not None and carrying < LEAST:
            return carrying
        if usual is None:
            beta = min(MOST, PER_BUDGET * start_s / (allowed * HOUR_S))
        else:
            left_s = usual.left(allowed) * usual.share_left
            beta = min(MOST_OF_GENERATING, PER_LEFT * start_s / left_s)
        spare = self.remaining * beta * math.sqrt(carrying)
        return carrying + math.floor(spare + 0.5)


NO_RESERVE = Reserve(remaining=0.0)
