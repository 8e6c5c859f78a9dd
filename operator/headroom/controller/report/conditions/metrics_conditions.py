"""The condition MetricsAvailable. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.api.start_steps import GATEWAYS_SILENT
from headroom.controller.report.conditions import zero_replicas
from headroom.controller.report.conditions.condition_result import (
    COLLECTING,
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
    join,
)
from headroom.scaling.values.signals import Freshness, Signals

_GAP = (
    "every ready replica has a recent sample, but one served before its first, and what it served "
    "is unknown: no replica is removed until that time has left the window"
)


def metrics_available(tick: TickResult) -> Judgement:
    """Say whether replicas and gateways were read recently."""
    signals = tick.decision.signals
    unread = _unread(tick)
    covered = samples_of(signals)
    if tick.is_at_zero:
        return TRUE, StatusReason.SCALED_TO_ZERO, zero_replicas.counts(tick)
    if not tick.gateway.fresh and not tick.gateway.begun and not tick.gateway.silent:
        return UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
    if not tick.gateway.fresh:
        return FALSE, StatusReason.METRICS_STALE, _no_gateway_metrics(tick)
    if signals.freshness is Freshness.FRESH and not tick.decision.counts.ready:
        return TRUE, StatusReason.METRICS_FRESH, join(zero_replicas.counts(tick), unread)
    if signals.freshness is Freshness.FRESH:
        return TRUE, StatusReason.METRICS_FRESH, join(covered, unread, no_histogram(tick))
    if not tick.decision.counts.ready:
        return (
            FALSE,
            StatusReason.NO_READY_REPLICAS,
            "no replica is ready, so there are no metrics",
        )
    if tick.is_collecting:
        return UNKNOWN, StatusReason.COLLECTING_METRICS, join(COLLECTING, unread)
    if signals.freshness is Freshness.STALE:
        return FALSE, StatusReason.METRICS_STALE, join(covered, unread)
    return FALSE, StatusReason.METRICS_MISSING, join(covered, unread)


def samples_of(signals: Signals) -> str:
    """Return the share of replicas with a recent sample, or the gap where all have one."""
    if signals.coverage >= 1.0 and signals.freshness is Freshness.STALE:
        return _GAP
    return f"{signals.coverage:.0%} of the ready replicas have a recent sample"


def _unread(tick: TickResult) -> str:
    """Return which pods could not be read and why, each cause once."""
    by_cause: dict[str, list[str]] = {}
    for one in tick.gathered.unread:
        by_cause.setdefault(one.why, []).append(one.pod)
    said = []
    for why, pods in list(by_cause.items())[:3]:
        more = f" and {len(pods) - 2} more" if len(pods) > 2 else ""
        said.append(f"{', '.join(pods[:2])}{more}: {why}")
    return join(*said)


def no_histogram(tick: TickResult) -> str:
    """Say that the SLO cannot be checked; empty if the server measures latency."""
    server = tick.service.spec.runtime.server
    if server.latency is not None or tick.gateway.watched:
        return ""
    return f"{server.title} has no latency histogram: the batch cost alone determines the replicas"


def _no_gateway_metrics(tick: TickResult) -> str:
    """Say that the gateways' counts are missing, so that nothing is removed."""
    words = f"client-side latency is unknown: {GATEWAYS_SILENT}"
    return join(words, *tick.gateway.silent[:2])
