"""The commands: run, render, explain, crd. Here adapters are built and handed to the controller."""

from headroom.cli.main import main

__all__ = ["main"]
