"""Figures of requests through the gateway while replicas, a gateway or the operator go."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import Figure, at_least, at_most, shown
from bench.node.visits import Visits
from load.messages import Summary
from load.outcomes import Outcome

REQUESTS = 20_000
LATE_S = 0.2
"""Largest delay of the load generator. With a larger one, the figures describe the generator."""


def figures_of_life(
    seen: Visits, summary: Summary, kills: int, computed_at_once: int
) -> list[Figure]:
    """Judge load while replicas start, stop and are killed; `computed_at_once` is per replica."""
    unanswered, answered = _missed(summary)
    return [
        at_most("readiness to first request, slowest", _most(seen.to_first_s), 1.0, " s", 2),
        shown("  number of replicas, including restarts after a kill", str(len(seen.to_first_s))),
        at_most("removed to last request, slowest", _most(seen.to_last_s), 1.0, " s", 2),
        shown("  number of replicas", str(len(seen.to_last_s))),
        at_least("requests meanwhile", summary.requests, REQUESTS, "", 0),
        shown("  replicas killed by SIGKILL", str(kills)),
        at_most("  answered with an error", answered, kills * computed_at_once, "", 0),
        at_most("  without an answer", unanswered, 0, "", 0),
        shown("  errors", _said(summary)),
        at_most("  send delay of the generator, p99", summary.late_p99_s, LATE_S, " s", 2),
    ]


def figures_of_kill(summary: Summary, rate_rps: float) -> list[Figure]:
    """Judge load while one gateway of two is killed: only what it had in flight may fail."""
    unanswered, answered = _missed(summary)
    in_flight = rate_rps * (summary.tally.quantile_s(0.99) or 0.0)
    return [
        at_most(
            f"a gateway of two killed: failed of {summary.requests}",
            *(unanswered + answered, round(in_flight)),
            *("", 0),
        ),
        shown("  errors", _said(summary)),
    ]


def figures_of_absence(summary: Summary, away_s: float) -> list[Figure]:
    """Judge load while there is no operator: nothing may fail."""
    missed = sum(_missed(summary))
    return [
        at_most(f"no operator for {away_s:g} s: failed of {summary.requests}", missed, 0, "", 0)
    ]


def _missed(summary: Summary) -> tuple[int, int]:
    """Count requests without an answer, and those with an error as the answer."""
    outcomes = summary.tally.outcomes
    silent = sum(
        outcomes.get(one, 0) for one in (Outcome.LOST, Outcome.UNREACHABLE, Outcome.UNSENT)
    )
    return silent, summary.requests - silent - outcomes.get(Outcome.OK, 0)


def _most(seconds: Sequence[float]) -> float:
    return max(seconds, default=float("nan"))


def _said(summary: Summary) -> str:
    said = ", ".join(f"{number}x {what}" for what, number in summary.failures)
    return f"{said or 'nothing failed'}; {summary.retried} sent again by the client"
