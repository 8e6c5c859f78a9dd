"""Judges faults: overload, a slow device, clients that leave, SIGTERM; and a long run."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import Figure, shown
from serverbench.judgement.bounded_figures import at_least, at_most
from serverbench.judgement.findings import Findings
from serverbench.records import Case
from serverbench.servers import OURS

GOOD_PERCENT, SLOW_GOOD_PERCENT = 90.0, 92.0
REFUSAL_MS, UNREADY_MS = 1.0, 100.0
RECOVERY_RATIO = 1.5
IN_FLIGHT = 16
GROWTH_MB = 2.0
"""Most by which the allocator's pools may still move."""


def overload(found: Findings, _: Sequence[str]) -> list[Figure]:
    """Good answers, refusals and recovery at 1.5 times the capacity."""
    good = found.median(Case.OVERLOAD, OURS, "good_rps")
    capacity = found.median(Case.OVERLOAD, OURS, "capacity_rps")
    refused_ms = found.median(Case.OVERLOAD, OURS, "refused_p50_ms")
    calm_ms = found.median(Case.OVERLOAD, OURS, "calm_p50_ms")
    recovery = found.ratio_of(Case.OVERLOAD, OURS, "recovery_p50_ms", "calm_p50_ms")
    return [
        at_least(
            f"1.5x overload: {good:.0f} good answers/s of {capacity:.0f}/s",
            100 * good / capacity,
            GOOD_PERCENT,
            " %",
        ),
        at_most("1.5x overload: refusal p50", refused_ms, REFUSAL_MS, " ms", 2),
        at_most(
            f"3 s after it: p50 to that before ({calm_ms:.1f} ms)", recovery, RECOVERY_RATIO, "x", 2
        ),
    ]


def slow(found: Findings, _: Sequence[str]) -> list[Figure]:
    """Good answers while the device is twice as slow."""
    good = found.median(Case.SLOW, OURS, "good_rps")
    capacity = found.median(Case.SLOW, OURS, "capacity_rps")
    first = found.median(Case.SLOW, OURS, "first_rps")
    return [
        shown("device twice as slow: good answers/s in the first 5 s", f"{first:.0f}/s"),
        at_least(
            f"afterwards: {good:.0f}/s of {capacity:.0f}/s",
            100 * good / capacity,
            SLOW_GOOD_PERCENT,
            " %",
        ),
    ]


def disconnect(found: Findings, _: Sequence[str]) -> list[Figure]:
    """Batches executed for clients that have left."""
    extra = found.worst(Case.DISCONNECT, OURS, "extra_batches")
    cancelled = found.median(Case.DISCONNECT, OURS, "cancelled")
    return [
        at_most("1000 clients leave: batches executed for them", extra, 0, "", 0),
        shown("of them counted as cancelled", f"{cancelled:.0f}"),
    ]


def sigterm(found: Findings, _: Sequence[str]) -> list[Figure]:
    """Answers and readiness after SIGTERM."""
    answered = found.median(Case.SIGTERM, OURS, "answered")
    unready_ms = found.worst(Case.SIGTERM, OURS, "unready_ms")
    return [
        at_least("SIGTERM with 16 in flight: answered", answered, IN_FLIGHT, "", 0),
        at_most("SIGTERM: until not ready", unready_ms, UNREADY_MS, " ms", 0),
        at_most("SIGTERM: exit status", found.worst(Case.SIGTERM, OURS, "exit_code"), 0, "", 0),
    ]


def soak(found: Findings, _: Sequence[str]) -> list[Figure]:
    """Growth, lost answers and counters over minutes."""

    def value(name: str) -> float:
        return found.median(Case.SOAK, OURS, name)

    name = f"soak, {value('minutes'):g} min, {value('requests'):.0f} requests"
    return [
        at_most(f"{name}: growth of memory", value("growth_mb"), GROWTH_MB, " MB", 1),
        at_most(f"{name}: lost answers", value("lost"), 0, "", 0),
        at_most(f"{name}: counters off", value("disagreement"), 0, "", 0),
        shown("soak: highest p95 of a minute", f"{value('p95_ms'):.0f} ms"),
    ]
