"""Starts the command line; a command without its libraries says what to install."""

# ruff: noqa: PLC0415  (the commands need libraries that may be missing)

from __future__ import annotations

import sys

from headroom.cli.broken_pipe import quiet_without_reader

MISUSE = 2
INTERRUPTED = 130
SIMULATOR = frozenset({"llvmlite", "matplotlib", "numba"})
"""Libraries of `headroom[simulator]` only; the rest is in `headroom[operator]`."""


def main() -> None:
    """Run a command."""
    start(None)


def start(name: str | None) -> None:
    """Run a command under a name; exit with 2 if a library that it needs is not installed.

    Exits with 130 after Ctrl-C, also while the libraries are read, and with 141 where the reader of
    the output has ended.
    """
    try:
        from headroom.cli.app import app

        with quiet_without_reader():
            app(prog_name=name)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
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
