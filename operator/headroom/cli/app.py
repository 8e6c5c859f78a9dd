"""The command line: every command of `headroom` under one Typer app."""

# ruff: noqa: PLC0415  (help is shown without the libraries that commands need)

from __future__ import annotations

from typing import Annotated

import typer

from headroom.cli.commands.activator import activator
from headroom.cli.commands.crd import crd
from headroom.cli.commands.doctor.command import doctor
from headroom.cli.commands.explain import explain
from headroom.cli.commands.get import get
from headroom.cli.commands.plan.command import app as plan_app
from headroom.cli.commands.reference.command import reference
from headroom.cli.commands.render import render
from headroom.cli.commands.run import run
from headroom.cli.commands.simulate.command import app as simulate_app
from headroom.cli.option_groups import with_option_groups
from headroom.cli.usage_errors import PlainUsage

app = typer.Typer(
    name="headroom",
    cls=PlainUsage,
    help="Keep a latency SLO for GPU inference with the fewest GPUs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"headroom {version('headroom')}")
        raise typer.Exit


@app.callback()
def headroom(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keep a latency SLO for GPU inference with the fewest GPUs."""


app.command()(get)
app.command()(explain)
app.command()(doctor)
app.add_typer(plan_app)
app.add_typer(simulate_app)
app.command()(with_option_groups(run))
app.command()(with_option_groups(activator))
app.command()(render)
app.command()(crd)
app.command()(reference)
