"""Exit codes of a command: 0 success, 1 a failure or a finding, 2 invalid usage."""

from __future__ import annotations

from typing import NoReturn

import typer

from headroom.cli.messages import say
from headroom.errors import ClusterError, NotFound, Unavailable
from headroom.printable import printable

FAILURE = 1


def fail(message: str) -> NoReturn:
    """Print an error and its remedy on standard error, and exit with 1."""
    say(f"error: {printable(message)}")
    raise typer.Exit(FAILURE)


def fail_for(error: ClusterError) -> NoReturn:
    """Print an error of the API server and its remedy, and exit with 1."""
    remedy = ""
    if isinstance(error, Unavailable):
        remedy = ": check that the API server can be reached, or choose another --context"
    if isinstance(error, NotFound):
        remedy = ": install Headroom's CustomResourceDefinition, or choose another --context"
    fail(f"{error}{remedy}")
