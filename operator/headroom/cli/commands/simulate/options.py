"""The options of `headroom simulate` as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from headroom.cli.cluster_options import Output, OutputOption


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Scenarios and autoscalers to simulate, and the files to write."""

    scenario: Annotated[
        list[str] | None,
        typer.Argument(help="Scenario files (TOML), or names of shipped scenarios."),
    ] = None
    autoscalers: Annotated[
        list[str] | None,
        typer.Option(
            "--autoscaler", "-a", help="Autoscaler to run; repeat it for several, or `all`."
        ),
    ] = None
    knobs: Annotated[
        list[str] | None,
        typer.Option(
            "--knob",
            "-k",
            help="Parameter, NAME=VALUE or AUTOSCALER.NAME=VALUE; repeat it for several.",
        ),
    ] = None
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Number of seeds: 1 to N.")] = 1
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, max=512, help="Parallel processes; default: one per core."
        ),
    ] = None
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Sweep the parameters of the peers, and show the Pareto front of each."
        ),
    ] = False
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Show the effect of each component of Headroom's decision."),
    ] = False
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder for report.json and report.html, or a .json or .html file; repeat it for "
            "several."
        ),
    ] = None
    output: OutputOption = Output.TEXT
