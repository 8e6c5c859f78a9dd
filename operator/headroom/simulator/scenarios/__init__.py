"""The shipped scenarios, by name."""

from __future__ import annotations

from importlib.resources import files

from headroom.simulator.scenario import Scenario
from headroom.simulator.scenario_file import ScenarioError, parse_scenario

_SUFFIX = ".toml"


def scenario_names() -> tuple[str, ...]:
    """Return the names of all shipped scenarios, sorted."""
    entries = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX)))


def shipped_scenario(name: str) -> Scenario:
    """Return a shipped scenario.

    Raises:
        ScenarioError: no scenario has this name.
    """
    known = scenario_names()
    if name not in known:
        rule = f"a shipped scenario is one of {', '.join(known)}"
        raise ScenarioError(f"{rule}; got {name!r:.80}")
    text = files(__name__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")
    return parse_scenario(text, name + _SUFFIX)
