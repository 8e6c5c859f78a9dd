"""The command line, and the wiring of the operator process."""

from headroom.cli.main import main

__all__ = ["main"]
