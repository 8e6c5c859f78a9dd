"""The console of a command that prints tables, of which a pipe or a file says no width."""

from __future__ import annotations

from rich.console import Console


def console(*, width_without_terminal: int) -> Console:
    """Return a console as wide as its terminal, or of this width."""
    found = Console(highlight=False)
    if found.is_terminal:
        return found
    return Console(highlight=False, width=width_without_terminal)
