"""How a command ends: 0 success, 1 a failure or a finding, 2 invalid usage."""

from __future__ import annotations

from typing import NoReturn

import typer

FAILURE = 1


def fail(message: str) -> NoReturn:
    """Print an error and its remedy on standard error, and exit with 1."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(FAILURE)
