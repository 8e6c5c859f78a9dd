"""A recording of a running operator as arrivals and services to simulate. Pure.

The format of its lines is `headroom.telemetry.recording`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy
from headroom.simulator.arrivals.counted import CountedArrivals
from headroom.simulator.arrivals.rates import Vector
from headroom.simulator.arrivals.recorded_trace import TraceError
from headroom.simulator.validation import require
from headroom.telemetry.recording import Header, ServiceLine, TickLine, read_line


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedService:
    """One recorded service."""

    name: str
    policy: Policy
    cost: CostModel | None
    cold_start_s: float | None
    edges_s: Vector
    """[ticks], from 0: the instants between which arrivals were counted."""
    counts: NDArray[np.int64]
    """[ticks - 1]. A missing count is interpolated between the rates on either side."""
    replicas: NDArray[np.int64]
    """[ticks]."""
    unknown_s: float
    """Seconds whose count is missing."""

    def arrivals(
        self,
        *,
        stream: str,
        start_s: float = 0.0,
        duration_s: float | None = None,
        scale: float | None = None,
        mean_rps: float | None = None,
    ) -> CountedArrivals:
        """Return the intervals that begin in a window, times `scale` or at `mean_rps`.

        Raises:
            ValueError: the window holds no interval or no request, or a factor is out of range.
        """
        require(
            scale is None or mean_rps is None, "scale and mean_rps must not both be given", "both"
        )
        known_s = float(self.edges_s[-1])
        require(0 <= start_s < known_s, f"start must be >= 0 s and < {known_s:g} s", start_s)
        duration_s = known_s - start_s if duration_s is None else duration_s
        require(duration_s > 0, "duration must be > 0 s", duration_s)
        end_s = start_s + duration_s
        rule = f"start + duration must lie within the {known_s:g} s that were recorded"
        require(end_s <= known_s + 1e-9, rule, f"{start_s:g} + {duration_s:g} s")
        low, high = np.searchsorted(self.edges_s[:-1], (start_s, end_s))
        counts = self.counts[low:high]
        require(bool(counts.sum() > 0), "the window must have requests", 0)
        edges = self.edges_s[low : high + 1] - self.edges_s[low]
        if mean_rps is not None:
            require(0 < mean_rps < math.inf, "mean_rps must be finite and > 0", mean_rps)
            scale = mean_rps * float(edges[-1]) / float(counts.sum())
        return CountedArrivals(
            edges_s=edges, counts=counts, scale=1.0 if scale is None else scale, stream=stream
        )


@dataclass(slots=True)
class _Gathered:
    """The ticks of one service while a file is read."""

    described: ServiceLine
    times_s: array[float] = field(default_factory=lambda: array("d"))
    arrivals: array[float] = field(default_factory=lambda: array("d"))
    replicas: array[int] = field(default_factory=lambda: array("q"))

    def finished(self, source: str) -> RecordedService:
        times = np.array(self.times_s)
        counted = np.array(self.arrivals)[1:]
        known = np.isfinite(counted)
        name = self.described.service
        if not known.any():
            raise TraceError(
                f"{source}: {name}: a recording must have at least two ticks with arrivals; got "
                f"{len(times)} ticks"
            )
        widths, middles = np.diff(times), (times[1:] + times[:-1]) / 2
        rates = np.interp(middles, middles[known], counted[known] / widths[known])
        counts = np.where(known, counted, np.rint(rates * widths)).astype(np.int64)
        return RecordedService(
            name=name,
            policy=self.described.policy,
            cost=self.described.cost,
            cold_start_s=self.described.cold_start_s,
            edges_s=times - times[0],
            counts=counts,
            replicas=np.array(self.replicas, dtype=np.int64),
            unknown_s=float(widths[~known].sum()),
        )


def read_recording(lines: Iterable[str], source: str) -> dict[str, RecordedService]:
    """Read a recording's lines, with their line ends; return its services by name.

    Raises:
        TraceError: names the line and the broken rule.
    """
    gathered: dict[str, _Gathered] = {}
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            break
        try:
            _take(read_line(line), number, gathered)
        except ValueError as error:
            raise TraceError(f"{source}, line {number}: {error}") from error
    if not gathered:
        raise TraceError(f"{source}: a recording must have a service; got {number} lines without")
    return {name: service.finished(source) for name, service in gathered.items()}


def _take(
    line: Header | ServiceLine | TickLine, number: int, gathered: dict[str, _Gathered]
) -> None:
    first = isinstance(line, Header)
    require(
        first == (number == 1), "the first line, and no other, must be of kind recording", line.kind
    )
    match line:
        case ServiceLine() if line.service in gathered:
            gathered[line.service].described = line
        case ServiceLine():
            gathered[line.service] = _Gathered(line)
        case TickLine():
            _append(line, gathered)


def _append(tick: TickLine, gathered: dict[str, _Gathered]) -> None:
    require(tick.service in gathered, "a service's line must come before its ticks", tick.service)
    into = gathered[tick.service]
    last_s = into.times_s[-1] if into.times_s else -math.inf
    require(tick.time_s > last_s, f"a service's ticks must come after {last_s:.12g} s", tick.time_s)
    into.times_s.append(tick.time_s)
    into.arrivals.append(math.nan if tick.arrivals is None else tick.arrivals)
    into.replicas.append(tick.replicas)
