"""The measurement of one number of services: a row of results, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from bench.figures import Figure, at_most, shown

CORES, RSS_MB, LATE_S, FIRST_DECISIONS_S = 0.5, 250.0, 1.0, 20.0
PROMISED_SERVICES = 1000
FLAT = 1.25
"""Cost per service and tick at the most services over that at the fewest."""
HEARTBEAT_S, WRITES_PER_S = 60.0, 4.0
"""DESIGN: status is written on change, else every max(60 s, services / 4 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The operator with this many services: while nothing changes, and after a restart."""

    services: int
    pods: int
    """Pods of all services, and others."""
    seconds: float
    """Watched."""
    cpu_s: float
    rss_mb: float
    """The most in these seconds."""
    ticks: float
    failed: float
    late_s: float
    """Delay of the start of a tick that 99 % of the ticks do not exceed."""
    writes: int
    """Writes of status."""
    calls: Mapping[str, float]
    """Requests to the API by verb."""
    warm_s: float
    """From the first of the new services to the last warm pod: the cluster's work, too."""
    first_s: float
    """From a start to the first decision of the last service."""
    first_cpu_s: float
    """CPU time of the process by then."""
    first_rss_mb: float
    """The most until then."""
    load: float
    """Load of the machine, in the watch."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Read what was kept."""
        return cls(**row)

    def row(self) -> Mapping[str, Any]:
        """Return a row for the results."""
        return asdict(self)

    @property
    def cpu_per_tick_ms(self) -> float:
        """Milliseconds of CPU for one service and tick, everything else included."""
        return 1000.0 * self.cpu_s / max(self.ticks, 1.0)


def turn_s(services: int) -> float:
    """Return the time in which each of this many services writes its status once."""
    return max(HEARTBEAT_S, services / WRITES_PER_S)


def figures(size: Size) -> Sequence[Figure]:
    """Compare one size with the bounds, which hold up to 1000 services."""
    services, minutes = size.services, size.seconds / 60.0
    at = f"{services} services"
    bound = services * 60.0 / turn_s(services) + 2.0
    calls = ", ".join(
        f"{verb} {number / size.seconds:.1f}/s"
        for verb, number in sorted(size.calls.items(), key=lambda item: -item[1])
    )
    bounded = at_most if services <= PROMISED_SERVICES else _beyond
    begun = f"{at}, {size.pods} pods: from start to the last service's first decision"
    return (
        bounded(f"{at}: share of a core", size.cpu_s / size.seconds, CORES, "", 3),
        bounded(f"{at}: resident memory", size.rss_mb, RSS_MB, " MB", 0),
        bounded(f"{at}: start delay, p99", size.late_s, LATE_S, " s", 3),
        bounded(f"{at}: status writes a minute", size.writes / minutes, bound, "", 1),
        shown(f"{at}: CPU per service and tick", f"{size.cpu_per_tick_ms:.2f} ms"),
        shown(f"{at}: ticks a second", f"{size.ticks / size.seconds:.1f}"),
        shown(f"{at}: failed ticks", f"{size.failed:.0f}"),
        shown(f"{at}: API calls", calls),
        bounded(begun, size.first_s, FIRST_DECISIONS_S, " s"),
        shown(f"{at}: CPU until then", f"{size.first_cpu_s:.1f} s"),
        bounded(f"{at}: peak memory until then", size.first_rss_mb, RSS_MB, " MB", 0),
        shown(
            f"{at}: load average, time until all were warm", f"{size.load:.1f}, {size.warm_s:.0f} s"
        ),
    )


def flat(first: Size, last: Size) -> Figure:
    """Compare the cost of a tick with many services and with few."""
    name = f"CPU per service and tick, {last.services} services over {first.services}"
    bounded = at_most if last.services <= PROMISED_SERVICES else _beyond
    return bounded(name, last.cpu_per_tick_ms / first.cpu_per_tick_ms, FLAT, "x", 2)


def _beyond(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Show a value without a bound."""
    return shown(name, f"{value:.{digits}f}{unit}")
