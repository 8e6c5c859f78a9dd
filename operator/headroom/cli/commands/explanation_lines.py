"""Lines of `headroom explain`: measured signals, hidden demand, promises. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headroom.api.service_status.signals_status import SignalsStatus
from headroom.api.service_status.status import Status
from headroom.scaling.values.demand import DemandKnown


def signals_line(service: Mapping[str, Any], status: Status) -> str:
    """Return the measured load, latencies and utilization next to their bounds."""
    slo, signals = _block(_block(service, "spec"), "slo"), status.signals
    if signals is None:
        return "No metrics yet."
    where = " at the gateway" if signals.latency_source == "Gateway" else ""
    busy, ceiling = share(signals.utilization), share(slo.get("utilizationCeiling"))
    measured = (
        f"{number(signals.arrivals_per_second)} arrivals/s",
        f"{number(signals.waiting)} waiting",
        *_latencies(slo, signals, where),
        f"utilization {busy} (ceiling {ceiling})",
        f"metrics {signals.freshness}",
    )
    return ", ".join(measured)


def _block(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a block; empty where an older schema admitted something else."""
    found = parent.get(name)
    return found if isinstance(found, Mapping) else {}


def _latencies(slo: Mapping[str, Any], signals: SignalsStatus, where: str) -> Iterator[str]:
    """Yield each promise with its measurement."""
    if latency := _block(slo, "latency"):
        found = signals.latency or "unknown"
        yield f"p{latency.get('percentile', 95)} {found}{where} (target {latency.get('target')})"
    for name, field, measured in (
        ("time to first token", "timeToFirstToken", signals.time_to_first_token),
        ("time per output token", "timePerOutputToken", signals.time_per_output_token),
    ):
        if one := _block(slo, field):
            found = measured or "unknown"
            yield f"p{one.get('percentile', 95)} of {name} {found} (target {one.get('target')})"


def promise_lines(status: Status) -> Iterator[str]:
    """Yield the demand that arrivals do not show, and the learned margin."""
    demand, slo = status.demand, status.slo
    if demand is not None and demand.known != DemandKnown.EXACT:
        yield f"Demand is {demand.sentence}"
    if (generation := status.generation) is not None:
        if generation.sentence:
            yield f"Generation: {generation.sentence}"
        for unknown in generation.unknown:
            yield f"Not known: {unknown}"
    if status.partner is not None:
        yield f"Partner: {status.partner.sentence}"
    for one in status.classes or ():
        yield f"Class {one.name}: {one.sentence}"
    if slo is not None and slo.sentence:
        yield slo.sentence[0].upper() + slo.sentence[1:]


def number(value: float | None) -> str:
    """Return a number as text; unknown if it is None."""
    return "unknown" if value is None else f"{value:g}"


def share(value: float | None) -> str:
    """Return a share in percent; unknown if it is None."""
    return "unknown" if value is None else f"{value:.0%}"
