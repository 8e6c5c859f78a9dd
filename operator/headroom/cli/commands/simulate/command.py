"""`headroom simulate`: the options."""

# ruff: noqa: PLC0415  (help is shown without the simulator, which takes a second to import)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headroom.cli.cluster_options import Output, OutputOption

if TYPE_CHECKING:
    from headroom.cli.commands.simulate.request import Ports

app = typer.Typer()


@app.command("simulate", no_args_is_help=True)
def simulate_command(
    scenario: Annotated[
        list[str] | None,
        typer.Argument(help="Scenario files (TOML), or names of shipped scenarios."),
    ] = None,
    autoscaler: Annotated[
        list[str] | None,
        typer.Option(
            "--autoscaler", "-a", help="Autoscaler to run; repeat it for several, or `all`."
        ),
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option(
            "--knob",
            "-k",
            help="Parameter, NAME=VALUE or AUTOSCALER.NAME=VALUE; repeat it for several.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Number of seeds: 1 to N.")] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, max=512, help="Parallel processes; default: one per core."
        ),
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Sweep the parameters of the peers, and show the Pareto front of each."
        ),
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Show the effect of each component of Headroom's decision."),
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder for report.json and report.html, or a .json or .html file; repeat it for "
            "several."
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
    list_: Annotated[
        bool, typer.Option("--list", help="List shipped scenarios and autoscalers.")
    ] = False,
) -> None:
    """Simulate Headroom and other autoscalers on scenarios, and compare misses and GPU-hours.

    Exit code: 1 if a run failed, 2 for invalid options, 130 after Ctrl-C (finished runs are
    reported).
    """
    from headroom.cli.commands.simulate.campaign import consoles, listed, simulate
    from headroom.cli.commands.simulate.request import Misuse, Request

    console, say = consoles()
    if list_:
        console.print(listed(_ports()))
        return
    if not scenario:
        raise typer.BadParameter("a scenario must be given; --list shows the shipped ones")
    request = Request(
        scenarios=scenario,
        autoscalers=autoscaler or (),
        knobs=knob or (),
        seeds=seeds,
        jobs=jobs,
        sweep=sweep,
        ablate=ablate,
        out=out or (),
        output=output,
    )
    try:
        code = simulate(request, _ports(), console, say)
    except Misuse as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        typer.echo(f"error: {error.filename}: {error.strerror}", err=True)
        code = 1
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        code = 1
    raise typer.Exit(code)


def _ports() -> Ports:
    from headroom.cli.commands.simulate.request import Ports
    from headroom.simulator.autoscalers import catalogue
    from headroom.simulator.autoscalers.headroom import COMPONENTS
    from headroom.simulator.campaign import perform, shipped
    from headroom.simulator.scenario_file import load_scenario

    return Ports(
        scenarios=shipped(),
        check=load_scenario,
        autoscalers=catalogue.entries(),
        grids=catalogue.GRIDS,
        components=COMPONENTS,
        perform=perform,
    )
