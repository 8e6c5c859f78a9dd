r"""What a running operator saw, tick by tick: the format, pure in both directions.

JSON lines, so that a file can be appended to and a cut one still reads:

    {"kind":"recording","version":1}
    {"kind":"service","service":"shop/ranker","policy":{...},"cost":{...},"cold_start_s":61.5}
    {"kind":"tick","service":"shop/ranker","time_s":1700000000.0,"arrivals":41,"replicas":3}

The first line comes once. A service's line comes before its ticks and again whenever its spec or
cost changed; the last one counts. `arrivals` are those since the service's tick before, at the
door, null where they are not known: missing is not zero. `cost` and `cold_start_s` are null until
measured. A last line without its end of line is what a killed writer leaves, and is not read.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from headroom.scaling.values import CostModel, Policy
from headroom.simulator.arrivals.counted import CountedArrivals
from headroom.simulator.arrivals.rates import Vector
from headroom.simulator.arrivals.streams import require
from headroom.simulator.arrivals.trace_file import TraceError

VERSION = 1
MOST_ARRIVALS = 10_000_000
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    kind: str
    version: int


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    kind: str
    service: str
    policy: Policy
    cost: CostModel | None
    cold_start_s: float | None


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    kind: str
    service: str
    time_s: float
    arrivals: int | None
    replicas: int


_HEADER = TypeAdapter(_Header)
_SERVICE = TypeAdapter(_Service)
_TICK = TypeAdapter(_Tick)


def header_line() -> str:
    """Return the line that a recording begins with."""
    return _HEADER.dump_json(_Header(kind="recording", version=VERSION)).decode() + "\n"


def service_line(
    service: str, policy: Policy, cost: CostModel | None = None, cold_start_s: float | None = None
) -> str:
    """Return the line that says what is promised and what a replica costs."""
    line = _Service(
        kind="service", service=service, policy=policy, cost=cost, cold_start_s=cold_start_s
    )
    return _SERVICE.dump_json(line).decode() + "\n"


def tick_line(service: str, time_s: float, arrivals: int | None, replicas: int) -> str:
    """Return the line of one tick; `arrivals` since the tick before, None where not known."""
    line = _Tick(kind="tick", service=service, time_s=time_s, arrivals=arrivals, replicas=replicas)
    return _TICK.dump_json(line).decode() + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedService:
    """One service as it was recorded."""

    name: str
    policy: Policy
    cost: CostModel | None
    cold_start_s: float | None
    edges_s: Vector
    """[ticks], from 0: the instants between which arrivals were counted."""
    counts: NDArray[np.int64]
    """[ticks - 1]. Where a count is missing, the rates on either side are joined by a line."""
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
        """Return a window, of the whole intervals that begin in it, times `scale` or at `mean_rps`.

        Raises:
            ValueError: the window holds no interval or no request, or a factor is out of range.
        """
        require(scale is None or mean_rps is None, "either scale or mean_rps is given", "both")
        known_s = float(self.edges_s[-1])
        require(0 <= start_s < known_s, f"0 s <= start < {known_s:g} s", start_s)
        duration_s = known_s - start_s if duration_s is None else duration_s
        require(duration_s > 0, "duration > 0 s", duration_s)
        end_s = start_s + duration_s
        rule = f"start + duration lie within the {known_s:g} s that were recorded"
        require(end_s <= known_s + 1e-9, rule, f"{start_s:g} + {duration_s:g} s")
        low, high = np.searchsorted(self.edges_s[:-1], (start_s, end_s))
        counts = self.counts[low:high]
        require(bool(counts.sum() > 0), "the window has requests", 0)
        edges = self.edges_s[low : high + 1] - self.edges_s[low]
        if mean_rps is not None:
            require(0 < mean_rps < math.inf, "mean_rps is finite and > 0", mean_rps)
            scale = mean_rps * float(edges[-1]) / float(counts.sum())
        return CountedArrivals(
            edges_s=edges, counts=counts, scale=1.0 if scale is None else scale, stream=stream
        )


@dataclass(slots=True)
class _Gathered:
    """The ticks of one service while a file is read."""

    described: _Service
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
                f"{source}: {name}: a recording has two ticks with arrivals at least, received "
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
    """Read a recording's lines, each with its end of line; return its services by name.

    Raises:
        TraceError: naming the line and the rule that it breaks.
    """
    gathered: dict[str, _Gathered] = {}
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            break
        try:
            _take(line, number, gathered)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{source}, line {number}: {_said(error)}") from error
    if not gathered:
        raise TraceError(f"{source}: a recording has a service, received {number} lines without")
    return {name: service.finished(source) for name, service in gathered.items()}


def _take(line: str, number: int, gathered: dict[str, _Gathered]) -> None:
    kind = _kind(line)
    require((kind == "recording") == (number == 1), 'the first line alone is "recording"', kind)
    if kind == "recording":
        version = _HEADER.validate_json(line).version
        require(version == VERSION, f"a recording's version is {VERSION}", version)
    elif kind == "service":
        service = _SERVICE.validate_json(line)
        if service.service in gathered:
            gathered[service.service].described = service
        else:
            gathered[service.service] = _Gathered(service)
    elif kind == "tick":
        _append(_TICK.validate_json(line), gathered)
    else:
        require(False, "a line's kind is recording, service or tick", kind)


def _append(tick: _Tick, gathered: dict[str, _Gathered]) -> None:
    require(tick.service in gathered, "a service's line comes before its ticks", tick.service)
    into = gathered[tick.service]
    last_s = into.times_s[-1] if into.times_s else -math.inf
    require(tick.time_s > last_s, f"a service's ticks come after {last_s:.12g} s", tick.time_s)
    rule = f"arrivals are null or 0 to {MOST_ARRIVALS}"
    require(tick.arrivals is None or 0 <= tick.arrivals <= MOST_ARRIVALS, rule, tick.arrivals)
    require(tick.replicas >= 0, "replicas >= 0", tick.replicas)
    into.times_s.append(tick.time_s)
    into.arrivals.append(math.nan if tick.arrivals is None else tick.arrivals)
    into.replicas.append(tick.replicas)


def _kind(line: str) -> str:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ValueError(f"a line is a JSON object, received {line.strip()!r:.60}") from error
    if not isinstance(value, dict):
        raise ValueError(f"a line is a JSON object, received {line.strip()!r:.60}")
    return str(value.get("kind"))[:40]


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        detail = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"][:1].lower() + detail["msg"][1:]
        return f"{where}: {message}, received {detail['input']!r:.60}"
    return str(error) if isinstance(error, ValueError) else "a line nests too deep"
