"""`headroom simulate`: the command."""

# ruff: noqa: PLC0415  (help is shown without the simulator, which takes a second to import)

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headroom.cli.commands.simulate.options import SimulationOptions
from headroom.cli.messages import say
from headroom.cli.option_groups import with_option_groups

if TYPE_CHECKING:
    from headroom.cli.commands.simulate.planned_runs import Ports

app = typer.Typer()


@app.command("simulate", no_args_is_help=True)
@with_option_groups
def simulate_command(
    options: SimulationOptions,
    list_: Annotated[
        bool, typer.Option("--list", help="List shipped scenarios and autoscalers.")
    ] = False,
) -> None:
    """Simulate Headroom and other autoscalers on scenarios, and compare misses and GPU-hours.

    Exit code: 1 if a run failed, 2 for invalid options, 130 after Ctrl-C (finished runs are
    reported).
    """
    from headroom.cli.commands.simulate.campaign import consoles, listed, simulate
    from headroom.cli.commands.simulate.planned_runs import Misuse

    console, progress = consoles()
    if list_:
        console.print(listed(_ports()))
        return
    if not options.scenario:
        raise typer.BadParameter("a scenario must be given; --list shows the shipped ones")
    try:
        code = simulate(options, _ports(), console, progress)
    except Misuse as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        say(f"error: {error.filename}: {error.strerror}")
        code = 1
    except ValueError as error:
        say(f"error: {error}")
        code = 1
    raise typer.Exit(code)


def _ports() -> Ports:
    from headroom.cli.commands.simulate.planned_runs import Ports
    from headroom.simulator.autoscalers import catalogue, sweep_grids
    from headroom.simulator.autoscalers.headroom import COMPONENTS
    from headroom.simulator.campaign import perform, shipped
    from headroom.simulator.scenario_file import load_scenario

    return Ports(
        scenarios=shipped(),
        check=load_scenario,
        autoscalers=catalogue.entries(),
        grids=sweep_grids.GRIDS,
        components=COMPONENTS,
        perform=perform,
    )
