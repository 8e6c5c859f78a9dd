"""Fan-out: the percentile that each of n parallel calls must meet so that all meet one.

Dean and Barroso, The Tail at Scale (CACM 2013): the slowest call decides. Calls are
assumed to be slow independently of each other.
"""

from __future__ import annotations

from headroom.planner.errors import require, share

_NEXT = "Give a percentile such as 0.99"


def percentile_of_each(percentile: float, calls: int) -> float:
    """Share of each call's answers that must be in time, p^(1/n). p99 of 10 calls: 0.9990."""
    share("the percentile", percentile, _NEXT)
    _check_calls(calls)
    return float(percentile ** (1.0 / calls))


def percentile_of_all(percentile: float, calls: int) -> float:
    """Share of requests all of whose calls are in time, p^n. p99 each, 100 calls: 0.366."""
    share("the percentile", percentile, _NEXT)
    _check_calls(calls)
    return float(percentile**calls)


def _check_calls(calls: int) -> None:
    require(calls >= 1, "the number of calls must be at least 1", calls, "Give the parallel calls")
