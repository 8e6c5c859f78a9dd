"""The options of `headroom simulate`."""

# ruff: noqa: PLC0415  (the simulator is imported when it is asked for: it takes a second)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headroom.cli.commands.simulate.request import Ports

app = typer.Typer()


@app.command("simulate", no_args_is_help=True)
def simulate_command(
    scenario: Annotated[
        list[str] | None, typer.Argument(help="TOML files, or names of shipped scenarios.")
    ] = None,
    autoscaler: Annotated[
        list[str] | None,
        typer.Option("--autoscaler", "-a", help="Repeat for several; all for every one."),
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option("--knob", "-k", help="NAME=VALUE or AUTOSCALER.NAME=VALUE; repeatable."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds 1 to N.")] = 1,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, max=512, help="Default: one per core.")
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Walk the peers' knobs; show each one's best front.")
    ] = False,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Show what each element of Headroom's decision earns.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write a JSON report here.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots here.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write report.json and report.html here.")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List shipped scenarios and autoscalers.")
    ] = False,
) -> None:
    """Run the decision and its peers on scenarios, and compare misses and GPU-hours.

    Exit code: 1 where a run failed, 2 for what cannot be asked, 130 after Ctrl-C (what was finished
    is reported).
    """
    from headroom.cli.commands.simulate.campaign import consoles, listed, simulate
    from headroom.cli.commands.simulate.request import Misuse, Request

    out, say = consoles()
    if list_:
        out.print(listed(_ports()))
        return
    if not scenario:
        raise typer.BadParameter("give a scenario; --list shows the shipped ones")
    request = Request(
        scenarios=scenario,
        autoscalers=autoscaler or (),
        knobs=knob or (),
        seeds=seeds,
        jobs=jobs,
        sweep=sweep,
        ablate=ablate,
        json=json,
        html=html,
        output=output,
    )
    try:
        code = simulate(request, _ports(), out, say)
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
        elements=COMPONENTS,
        perform=perform,
    )
