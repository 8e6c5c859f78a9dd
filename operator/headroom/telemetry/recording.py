r"""The lines of a recording: a running operator's observations, tick by tick. Pure.

JSON lines, so that a file can be appended to and a truncated one can still be read:

    {"kind":"recording","version":1}
    {"kind":"service","service":"shop/ranker","policy":{...},"cost":{...},"cold_start_s":61.5}
    {"kind":"tick","service":"shop/ranker","time_s":1700000000.0,"arrivals":41,"replicas":3}

The header comes once. A service line comes before the service's ticks and again whenever its spec
or cost changed; the last one counts. `arrivals` are the requests since the previous tick, null if
unknown: missing is not zero. `replicas` are the desired ones. `cost` and `cold_start_s` are null
until measured. A last line without a line feed was left by a killed writer and is ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from headroom.api.rule_words import rule_of
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy

VERSION = 1
MOST_ARRIVALS = 10_000_000
"""Maximum arrivals of one tick; more means a defective counter."""
MOST_REPLICAS = 1_000_000
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a recording."""

    kind: str = "recording"
    version: int


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLine:
    """The policy and the cost model of one service."""

    kind: str = "service"
    service: str
    policy: Policy
    cost: CostModel | None
    cold_start_s: float | None


@with_config(_STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class TickLine:
    """One tick of one service."""

    kind: str = "tick"
    service: str
    time_s: float
    arrivals: int | None
    """Requests since the previous tick; None if unknown."""
    replicas: int


_HEADER = TypeAdapter(Header)
_SERVICE = TypeAdapter(ServiceLine)
_TICK = TypeAdapter(TickLine)


def header_line() -> str:
    """Return the first line of a recording."""
    return _HEADER.dump_json(Header(version=VERSION)).decode() + "\n"


def service_line(
    service: str, policy: Policy, cost: CostModel | None = None, cold_start_s: float | None = None
) -> str:
    """Return the line of a service's policy and cost model."""
    line = ServiceLine(service=service, policy=policy, cost=cost, cold_start_s=cold_start_s)
    return _SERVICE.dump_json(line).decode() + "\n"


def tick_line(service: str, time_s: float, arrivals: int | None, replicas: int) -> str:
    """Return the line of one tick; `arrivals` since the previous tick, None if unknown."""
    line = TickLine(service=service, time_s=time_s, arrivals=arrivals, replicas=replicas)
    return _TICK.dump_json(line).decode() + "\n"


def read_line(line: str) -> Header | ServiceLine | TickLine:
    """Read one line.

    Raises:
        ValueError: with the violated rule and the actual content.
    """
    try:
        kind = _kind(line)
        if kind == "recording":
            return _header(line)
        if kind == "service":
            return _SERVICE.validate_json(line)
        if kind == "tick":
            return _tick(line)
    except ValidationError as error:
        raise ValueError(_said(error)) from error
    except RecursionError as error:
        raise ValueError("a line is nested too deeply") from error
    raise ValueError(f"kind must be recording, service or tick; got {kind}")


def _header(line: str) -> Header:
    header = _HEADER.validate_json(line)
    if header.version != VERSION:
        raise ValueError(f"version must be {VERSION}; got {header.version}")
    return header


def _tick(line: str) -> TickLine:
    tick = _TICK.validate_json(line)
    if tick.arrivals is not None and not 0 <= tick.arrivals <= MOST_ARRIVALS:
        rule = f"arrivals must be null or 0 to {MOST_ARRIVALS}"
        raise ValueError(f"{rule}; got {tick.arrivals}")
    if not 0 <= tick.replicas <= MOST_REPLICAS:
        raise ValueError(f"replicas must be 0 to {MOST_REPLICAS}; got {tick.replicas}")
    return tick


def _kind(line: str) -> str:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ValueError(f"a line must be a JSON object; got {line.strip()!r:.60}") from error
    if not isinstance(value, dict):
        raise ValueError(f"a line must be a JSON object; got {line.strip()!r:.60}")
    return str(value.get("kind"))[:40]


def _said(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {rule_of(detail)}; got {detail['input']!r:.60}"
