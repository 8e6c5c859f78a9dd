"""Announces the arrivals of the prefill pool to the decode pool, as far as it can pass them on.

Requests reach the prefill pool first, so its arrivals are the demand of both, also while it has too
few replicas to pass them on. Both pools then grow in the same cold start. What is announced is at
most what the replicas that the prefill pool requests can pass on. While a queue is passed on, the
decode pool's own arrivals rise to that and no further, whatever their trend says.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.frozen import replace
from headroom.scaling.generation.pools.passing import RELEASED_S, Passing
from headroom.scaling.values.partner import Partner, PoolRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """Rates to expect from the prefill pool."""

    steady_rps: float
    later_rps: float
    most_rps: float
    limit_rps: float | None
    """More is not passed on, whatever the decode pool's own arrivals promise: while a queue is
    passed on, which rises like a load that grows. None otherwise."""
    name: str


def announced(partner: Partner, passing: Passing, now_s: float) -> Announced | None:
    """Return the rates for a decode pool to expect; None without a reliable report of the partner.

    Not while the share that is passed on is unknown or implausible, nor while it is unknown what a
    prefill replica takes: an announcement without a bound could buy any number of replicas. And not
    while the prefill pool passes on at once what reaches it: the decode pool's own arrivals say the
    same then, without the noise of a second count.
    """
    report, share = partner.report, passing.share
    if partner.role is not PoolRole.PREFILL or report is None or not report.fresh:
        return None
    carries_rps = report.carries_rps
    if share is None or passing.unrelated or carries_rps is None:
        return None
    if not report.full and not passing.releases(now_s):
        return None
    released_rps = report.waiting / RELEASED_S
    later_rps = report.later_rps + released_rps
    return Announced(
        steady_rps=share * min(report.steady_rps + released_rps, carries_rps),
        later_rps=share * min(later_rps, carries_rps),
        most_rps=share * min(max(report.most_rps, later_rps), carries_rps),
        limit_rps=share * carries_rps if passing.releases(now_s) else None,
        name=str(partner),
    )


def with_announced(
    expected: Expected, known: Announced | None, present_rps: float | None
) -> Expected:
    """Return the expected rates: the pool's own forecast, or the announced rates if higher.

    What arrives now is never doubted.
    """
    if known is None:
        return expected
    later = expected.later
    if known.limit_rps is not None and present_rps is not None:
        later = _at_most(later, max(known.limit_rps, present_rps))
    return replace(
        expected,
        later=_at_least(later, known.steady_rps, known.later_rps, known.name),
        most=_at_least(expected.most, known.steady_rps, known.most_rps, known.name),
    )


def _at_most(rates: Rates, limit_rps: float) -> Rates:
    if rates.for_latency_rps <= limit_rps:
        return rates
    return Rates(for_ceiling_rps=min(rates.for_ceiling_rps, limit_rps), for_latency_rps=limit_rps)


def _at_least(rates: Rates, ceiling_rps: float, latency_rps: float, name: str) -> Rates:
    latency_rps = max(latency_rps, ceiling_rps)
    if ceiling_rps <= rates.for_ceiling_rps and latency_rps <= rates.for_latency_rps:
        return rates
    return Rates(
        for_ceiling_rps=max(rates.for_ceiling_rps, ceiling_rps),
        for_latency_rps=max(rates.for_latency_rps, latency_rps),
        occasion=f" from the {name}" if latency_rps > rates.for_latency_rps else rates.occasion,
    )
