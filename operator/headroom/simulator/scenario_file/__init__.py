"""Scenario files: TOML read into a Scenario, or rejected with file, line, rule and value."""

from headroom.simulator.scenario_file.problems import ScenarioError
from headroom.simulator.scenario_file.reading import load_scenario, parse_scenario

__all__ = ["ScenarioError", "load_scenario", "parse_scenario"]
