"""The commands of `headroom`. Here adapters are built and handed to the controller."""

from headroom.cli.main import main

__all__ = ["main"]
