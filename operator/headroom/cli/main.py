"""Starts the command line; a command without its libraries says what to install."""

# ruff: noqa: PLC0415  (the commands need libraries that may be missing)

from __future__ import annotations

import sys

MISUSE = 2
SIMULATOR = frozenset({"llvmlite", "matplotlib", "numba"})
"""Libraries of `headroom[simulator]` only; the rest is in `headroom[operator]`."""


def main() -> None:
    """Run a command."""
    start(None)


def start(name: str | None) -> None:
    """Run a command under a name; exit with 2 if a library that it needs is not installed."""
    try:
        from headroom.cli.app import app

        app(prog_name=name)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", "headroom"):
            raise
        extra = "simulator" if library in SIMULATOR else "operator"
        print(
            f"error: this command needs {library}, which is not installed: "
            f"pip install 'headroom[{extra}]'",
            file=sys.stderr,
        )
        sys.exit(MISUSE)
