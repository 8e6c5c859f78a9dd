"""Percentiles (failures count as slowest) and rates of one run of load."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from serverbench.generator.exchange import OK, Answers

REFUSED = (429, 503)


@dataclass(frozen=True, slots=True)
class Answered:
    """One request's end."""

    due_s: float
    took_s: float
    """Infinite without an answer."""
    status: int
    kind: int

    @property
    def ok(self) -> bool:
        """Return whether it got the right answer, however late."""
        return self.status == OK


@dataclass(frozen=True, slots=True)
class Window:
    """Requests that were due in a stretch of time."""

    requests: Sequence[Answered]
    seconds: float

    def between(self, begin_s: float, end_s: float) -> Window:
        """Those due from `begin_s` on and before `end_s`."""
        inside = [one for one in self.requests if begin_s <= one.due_s < end_s]
        return Window(inside, end_s - begin_s)

    def quantile_s(self, q: float) -> float:
        """Nearest rank over all requests; a failed one never ended. NaN without requests."""
        return quantile((one.took_s if one.ok else math.inf for one in self.requests), q)

    def refused_quantile_s(self, q: float) -> float:
        """Return a quantile of the rejected requests; NaN without any."""
        return quantile((one.took_s for one in self.requests if one.status in REFUSED), q)

    def good_rps(self, slo_s: float) -> float:
        """Right answers in time, per second."""
        return sum(one.ok and one.took_s <= slo_s for one in self.requests) / self.seconds

    def statuses(self) -> dict[int, int]:
        """Return the number of requests by HTTP status or `Status`."""
        return dict(Counter(one.status for one in self.requests))

    def count(self, which: Callable[[Answered], bool]) -> int:
        """Return the number of requests with these statuses."""
        return sum(map(which, self.requests))


def window(answers: Answers, seconds: float) -> Window:
    """Return all requests of a run of this length."""
    columns = zip(answers.due_s, answers.took_s, answers.statuses, answers.kinds, strict=True)
    requests = [
        Answered(due_s, math.inf if took_s is None else took_s, status, kind)
        for due_s, took_s, status, kind in columns
    ]
    return Window(requests, seconds)


def quantile(values: Iterable[float], q: float) -> float:
    """Return the quantile by nearest rank; NaN without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else math.nan
