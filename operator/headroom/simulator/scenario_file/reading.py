"""Reads the text of a scenario file into a Scenario.

    name = "step"
    tick = "2s"                of the decision
    [cluster]                  gpus, provision
    [[service]]                name, drain
    [service.arrivals]         trace, recording or generator; start, duration, scale or mean_rps
    [service.server]           fixed, per_item, max_batch, slots, cv, spread; advertised = {...}
    [service.network]          routing, connections, in_flight_cap
    [service.clients]          timeout, deadline, max_waiting, connections, connection_requests,
                               connection_idle, users, think, retries, backoff, retries_marked
    [service.slo]              target, percentile, queue_depth, utilization_ceiling
    [service.scaling]          min_replicas, max_replicas, initial_replicas, priority
    [service.scaling.scale_up] stabilization, rate = {period, replicas, percent}; and scale_down
    [service.cold_start]       total and spread, or phases = [{name, median, spread}]; timeout
    [[fault]]                  kind, start, duration, share, factor, service

With a recording, slo, server and cold_start are optional and default to the recorded ones. No
other files are read than the named traces and recordings.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headroom.simulator.scenario import Scenario
from headroom.simulator.scenario_file.building import ScenarioTable, build
from headroom.simulator.scenario_file.library import Files
from headroom.simulator.scenario_file.problems import (
    Problem,
    ScenarioError,
    found_by_pydantic,
    refusal,
)

MAX_BYTES = 8 << 20
"""A hundred thousand stages have 5 MB."""
MOST_PARTS = 32
"""The library reads a key of n parts between dots in n^3 steps: one of 8 KB takes 1.2 s."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_NEXT = rf"[ \t]*+\.[ \t]*+{_PART}"
_KEY = re.compile(rf"{_PART}(?:{_NEXT}){{0,{MOST_PARTS - 1}}}+({_NEXT})?")


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file, and the traces and recordings that it names.

    Raises:
        ScenarioError: names every problem found.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode()
    except OSError as error:
        rule = "a scenario must be a readable file"
        raise ScenarioError(f"{path}: {rule}; got: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        rule = f"a scenario must be UTF-8 text; got byte 0x{error.object[error.start]:02x}"
        raise ScenarioError(f"{path}, line {line}: {rule}") from error
    if len(data) > MAX_BYTES:
        raise ScenarioError(f"{path}: a scenario must have at most {MAX_BYTES} bytes; got more")
    return parse_scenario(text, str(path), folder=path.parent)


def parse_scenario(text: str, source: str, *, folder: Path | None = None) -> Scenario:
    """Read a scenario's text.

    Args:
        text: TOML.
        source: name of the file in errors.
        folder: base of the paths of traces and recordings; None allows no paths.

    Raises:
        ScenarioError: names every problem found.
    """
    text = text.replace("\r\n", "\n")
    document = _document(text, source)
    try:
        return build(ScenarioTable.model_validate(document), Files(folder=folder))
    except ValidationError as error:
        raise refusal(found_by_pydantic(error), text, source) from None
    except Problem as problem:
        raise refusal([problem], text, source) from problem.__cause__


def _document(text: str, source: str) -> dict[str, Any]:
    if (deep := next((key for key in _KEY.finditer(text) if key[1]), None)) is not None:
        line = text.count("\n", 0, deep.start()) + 1
        rule = f"a key must have at most {MOST_PARTS} parts between dots"
        raise ScenarioError(f"{source}, line {line}: {rule}; got more")
    try:
        return tomllib.loads(text)
    except RecursionError:
        line, what = 1, "tables nested too deep"
    except ValueError as error:
        said = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        what = said[1] if said else str(error)
        line = int(said[2]) if said and said[2] else text.count("\n") + 1 if said else 1
    raise ScenarioError(f"{source}, line {line}: a scenario must be valid TOML: {what}")
