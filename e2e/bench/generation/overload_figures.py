"""The outcomes of the requests to an overloaded generating server, and the figures of it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench.figures import Figure, at_least, at_most, shown
from generation_peers.lengths import Question
from serverbench.generator.exchange import OK, Answers

FIRST_TOKEN_S = 1.0
TIME_PER_TOKEN_S = 0.2
"""Three times what a token takes with all seats taken, so that prompts may be computed between."""
FULL, OVERLOAD = 1.0, 1.5
REFUSED, NOT_FOUND = 429, 404
LEAST_GOOD = 0.9
MOST_REFUSAL_MS = 5.0


class Stretch(NamedTuple):
    """Some seconds at a rate."""

    good: int
    sent: int
    refused_ms: Sequence[float]
    slow: int
    """Complete, but with more time per token than promised."""
    others: int
    """Neither answered nor refused: expired, failed."""
    unknown_ms: Sequence[float]
    """Time of the same front for requests for an unknown model."""
    bare_ms: Sequence[float]
    sent_late_ms: float


def counted(answers: Answers, asked: Sequence[Question], bare: Answers) -> Stretch:
    """Return the outcomes of the requests of one stretch; the first kind is the unknown model."""
    refused_ms = _answered_ms(answers, REFUSED)
    complete = [
        took_s <= FIRST_TOKEN_S + TIME_PER_TOKEN_S * asked[kind - 1].answer_tokens
        for kind, took_s, status in zip(
            answers.kinds, answers.took_s, answers.statuses, strict=True
        )
        if kind and status == OK and took_s is not None
    ]
    sent = sum(kind > 0 for kind in answers.kinds)
    return Stretch(
        good=sum(complete),
        sent=sent,
        refused_ms=refused_ms,
        slow=len(complete) - sum(complete),
        others=sent - len(complete) - len(refused_ms),
        unknown_ms=_answered_ms(answers, NOT_FOUND),
        bare_ms=_answered_ms(bare, OK),
        sent_late_ms=1000.0 * answers.late_p99_s,
    )


def _answered_ms(answers: Answers, status: int) -> Sequence[float]:
    """Return the times from the instant a request was sent."""
    return [
        1000.0 * (took_s - late_s)
        for took_s, late_s, found in zip(
            answers.took_s, answers.late_s, answers.statuses, strict=True
        )
        if found == status and took_s is not None
    ]


def figures_of(
    capacities: Sequence[float], full: Sequence[Stretch], over: Sequence[Stretch], seconds: float
) -> Sequence[Figure]:
    """Return the figures of all rounds, each stretch `seconds` long."""

    def good(found: Sequence[Stretch]) -> float:
        return statistics.median(
            one.good / seconds / rps for one, rps in zip(found, capacities, strict=True)
        )

    refused = [ms for one in over for ms in one.refused_ms]
    return [
        shown("capacity of each round", "; ".join(f"{rps:.2f}/s" for rps in capacities)),
        *(
            shown(
                f"{times:g}x: sent; good; refused; slow; other",
                f"{sum(one.sent for one in found)}; {sum(one.good for one in found)}; "
                f"{sum(len(one.refused_ms) for one in found)}; "
                f"{sum(one.slow for one in found)}; {sum(one.others for one in found)}",
            )
            for times, found in ((FULL, full), (OVERLOAD, over))
        ),
        shown(f"{FULL:g}x: good, of capacity", f"{100.0 * good(full):.0f} %"),
        at_least(
            f"{OVERLOAD:g}x: good, of capacity", 100.0 * good(over), 100.0 * LEAST_GOOD, " %", 0
        ),
        shown("refusals: p50", f"{_quantile(refused, 0.5):.1f} ms"),
        at_most("refusals: p99", _quantile(refused, 0.99), MOST_REFUSAL_MS, " ms"),
        *(
            shown(f"{what}: p50; p99", f"{_quantile(ms, 0.5):.1f}; {_quantile(ms, 0.99):.1f} ms")
            for what, ms in (
                ("the same front, an unknown model", [ms for one in over for ms in one.unknown_ms]),
                ("a bare server without an engine", [ms for one in over for ms in one.bare_ms]),
            )
        ),
        shown(
            "sent late by the client itself, p99 (not counted above)",
            f"{max(one.sent_late_ms for one in over):.1f} ms",
        ),
    ]


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
