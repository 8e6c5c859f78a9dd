"""The runs that the options of a simulation name, or the rule that they break."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headroom.cli.commands.simulate.options import SimulationOptions
from headroom.simulator.autoscalers.catalogue import typed
from headroom.simulator.campaign import Knob, Perform, Run, planned
from headroom.simulator.report.comparison import CLAIRVOYANT, OURS
from headroom.simulator.report.studies import settings_of

USUAL = (OURS, "hpa-utilization", "hpa-queue", "keda", "knative", "llm-d-slo", CLAIRVOYANT)
"""The autoscalers that are compared by default."""
ALL = "all"
WITHOUT = "without"
"""Headroom's parameter that leaves out one component of its decision."""


class Misuse(Exception):  # noqa: N818  (an error of usage)
    """The arguments are invalid; the message says the rule and the value."""


class Described(Protocol):
    """The description of an autoscaler."""

    @property
    def summary(self) -> str:
        """Return one line of description."""

    @property
    def knobs(self) -> Mapping[str, Knob]:
        """Return the parameters, each with its default."""

    @property
    def check(self) -> Callable[[str, Knob], None]:
        """Return a check that raises ValueError for a value out of a parameter's range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The simulator as the command uses it: scenarios, autoscalers and a way to run them."""

    scenarios: Mapping[str, Path]
    """Shipped ones, by name."""
    check: Callable[[Path], object]
    """Reads a scenario; raises ValueError with file, line and rule, or OSError."""
    autoscalers: Mapping[str, Described]
    grids: Mapping[str, Sequence[Mapping[str, float]]]
    components: Sequence[str]
    perform: Perform


def runs_of(given: SimulationOptions, ports: Ports) -> tuple[Run, ...]:
    """Return the runs.

    Raises Misuse, ValueError for a malformed scenario, OSError where a file cannot be read.
    """
    paths = [_scenario(name, ports.scenarios) for name in given.scenario or ()]
    settings = _settings(given, ports)
    for path in paths:
        ports.check(path)
    return planned(dict.fromkeys(paths), settings, given.seeds)


def _scenario(name: str, shipped: Mapping[str, Path]) -> Path:
    if name in shipped:
        return shipped[name]
    path = Path(name)
    if path.is_file():
        return path.resolve()
    if path.suffix == ".toml" or path.name != name:
        raise Misuse(f"a scenario must be a file that exists, here {path.resolve()}; got {name!r}")
    known = ", ".join(shipped) or "none is installed"
    raise Misuse(f"a scenario must be a TOML file or one of: {known}; got {name!r}")


def _settings(given: SimulationOptions, ports: Ports) -> Sequence[tuple[str, Mapping[str, Knob]]]:
    if given.ablate:
        if given.sweep or given.autoscalers or given.knobs:
            raise Misuse("--ablate runs only Headroom: leave out --sweep, --autoscaler and --knob")
        if not ports.components:
            raise Misuse("--ablate: the decision has no component that can be left out")
        return [(OURS, {}), *((OURS, {WITHOUT: component}) for component in ports.components)]
    chosen = _chosen(given.autoscalers or (), tuple(ports.autoscalers))
    if given.sweep:
        if given.knobs:
            raise Misuse("--sweep sets the parameters: leave out --knob or --sweep")
        return settings_of(chosen, ports.grids)
    knobs = _knobs(given.knobs or (), {name: ports.autoscalers[name] for name in chosen})
    return [(name, knobs[name]) for name in chosen]


def _chosen(wanted: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    if ALL in wanted:
        return known
    for name in wanted:
        if name not in known:
            raise Misuse(f"an autoscaler must be one of: {', '.join(known)}, {ALL}; got {name!r}")
    return list(dict.fromkeys(wanted)) or [name for name in USUAL if name in known]


def _knobs(given: Iterable[str], known: Mapping[str, Described]) -> Mapping[str, dict[str, Knob]]:
    chosen = tuple(known)
    found: dict[str, dict[str, Knob]] = {name: {} for name in chosen}
    for text in given:
        target, equals, value = text.partition("=")
        autoscaler, dot, knob = target.rpartition(".")
        if not (equals and knob and value):
            raise Misuse(f"--knob must be NAME=VALUE or AUTOSCALER.NAME=VALUE; got {text!r}")
        if not dot and len(chosen) > 1:
            raise Misuse(f"--knob must name its autoscaler, as in {chosen[0]}.{text}; got {text!r}")
        owner = autoscaler or chosen[0]
        if owner not in found:
            raise Misuse(
                f"--knob must name one of the autoscalers {', '.join(chosen)}; got {owner!r}"
            )
        defaults = known[owner].knobs
        if knob not in defaults:
            there = ", ".join(defaults) or "none"
            raise Misuse(f"--knob of {owner} must be one of: {there}; got {knob!r}")
        try:
            found[owner][knob] = typed(f"--knob {owner}.{knob}", defaults[knob], value)
            known[owner].check(knob, found[owner][knob])
        except ValueError as error:
            raise Misuse(str(error)) from None
    return found
