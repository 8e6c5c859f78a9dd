"""How a command ends: 0 as wished, 1 a failure or a finding, 2 a command line that is wrong."""

from __future__ import annotations

from typing import NoReturn

import typer

FAILURE = 1


def fail(message: str) -> NoReturn:
    """Say on standard error what is wrong and what to do, and end with 1."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(FAILURE)
