"""Messages of commands on standard error: errors, progress, what was written."""

from __future__ import annotations

import typer

from headroom.printable import printable


def say(message: str) -> None:
    """Print a message, line by line; servers and files whose words it quotes steer no terminal."""
    typer.echo("\n".join(map(printable, message.split("\n"))), err=True)
