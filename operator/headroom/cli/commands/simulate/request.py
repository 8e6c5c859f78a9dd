"""What a user asks to have simulated → the runs that it takes, or why it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headroom.simulator.campaign import Knob, Perform, Run, planned
from headroom.simulator.report.comparison import CLAIRVOYANT, OURS
from headroom.simulator.sweep import settings_of

USUAL = (OURS, "hpa-utilization", "hpa-queue", "keda", "knative", "llm-d-slo", CLAIRVOYANT)
"""What is compared when nothing is chosen."""
ALL = "all"
WITHOUT = "without"
"""Headroom's knob that leaves out one element of its decision."""


class Misuse(Exception):  # noqa: N818  (what the caller did)
    """The arguments ask for what cannot be; the message says the rule and what was received."""


class Described(Protocol):
    """What is known of an autoscaler without running it."""

    @property
    def law(self) -> str:
        """What it does, in a line."""

    @property
    def knobs(self) -> Mapping[str, Knob]:
        """What may be set, each with its default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What the command knows of the simulator: scenarios, autoscalers, and how a run is done."""

    scenarios: Mapping[str, Path]
    """Shipped ones, by name."""
    check: Callable[[Path], object]
    """Read a scenario; raise ValueError with file, line and rule, or OSError."""
    autoscalers: Mapping[str, Described]
    grids: Mapping[str, Sequence[Mapping[str, float]]]
    elements: Sequence[str]
    perform: Perform


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    scenarios: Sequence[str]
    autoscalers: Sequence[str] = ()
    knobs: Sequence[str] = ()
    seeds: int = 1
    jobs: int | None = None
    sweep: bool = False
    ablate: bool = False
    json: Path | None = None
    html: Path | None = None
    output: Path | None = None


def runs_of(request: Request, ports: Ports) -> tuple[Run, ...]:
    """Return the runs.

    Raises Misuse, ValueError for a malformed scenario, OSError where a file cannot be read.
    """
    paths = [_scenario(name, ports.scenarios) for name in request.scenarios]
    settings = _settings(request, ports)
    for path in paths:
        ports.check(path)
    return planned(dict.fromkeys(paths), settings, request.seeds)


def _scenario(name: str, shipped: Mapping[str, Path]) -> Path:
    if name in shipped:
        return shipped[name]
    path = Path(name)
    if path.is_file():
        return path.resolve()
    known = ", ".join(shipped) or "none is shipped"
    raise Misuse(f"a scenario must be a TOML file or one of: {known}; got {name!r}")


def _settings(request: Request, ports: Ports) -> Sequence[tuple[str, Mapping[str, Knob]]]:
    if request.ablate:
        if request.sweep or request.autoscalers or request.knobs:
            raise Misuse("--ablate is about Headroom alone: without --sweep, --autoscaler, --knob")
        if not ports.elements:
            raise Misuse("--ablate: no element of this decision can be switched off")
        return [(OURS, {}), *((OURS, {WITHOUT: element}) for element in ports.elements)]
    chosen = _chosen(request.autoscalers, tuple(ports.autoscalers))
    if request.sweep:
        if request.knobs:
            raise Misuse("--sweep walks the knobs itself: leave out --knob, or --sweep")
        return settings_of(chosen, ports.grids)
    knobs = _knobs(request.knobs, {name: ports.autoscalers[name].knobs for name in chosen})
    return [(name, knobs[name]) for name in chosen]


def _chosen(wanted: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    if ALL in wanted:
        return known
    for name in wanted:
        if name not in known:
            raise Misuse(f"an autoscaler must be one of: {', '.join(known)}, {ALL}; got {name!r}")
    return list(dict.fromkeys(wanted)) or [name for name in USUAL if name in known]


def _knobs(
    given: Iterable[str], known: Mapping[str, Mapping[str, Knob]]
) -> Mapping[str, dict[str, Knob]]:
    chosen = tuple(known)
    found: dict[str, dict[str, Knob]] = {name: {} for name in chosen}
    for text in given:
        target, equals, value = text.partition("=")
        autoscaler, dot, knob = target.rpartition(".")
        if not (equals and knob and value):
            raise Misuse(f"a knob must be NAME=VALUE or AUTOSCALER.NAME=VALUE; got {text!r}")
        if not dot and len(chosen) > 1:
            raise Misuse(f"say whose knob it is: {chosen[0]}.{text}, or choose one --autoscaler")
        owner = autoscaler or chosen[0]
        if owner not in found:
            raise Misuse(f"{owner!r} is not among the chosen: {', '.join(chosen)}")
        if knob not in known[owner]:
            there = ", ".join(known[owner]) or "none"
            raise Misuse(f"a knob of {owner} must be one of: {there}; got {knob!r}")
        found[owner][knob] = _value(value)
    return found


def _value(text: str) -> Knob:
    try:
        return float(text)
    except ValueError:
        return text
