"""How each command of `headroom plan` ends: with what it found, or with 2 and a sentence."""

# ruff: noqa: PLC0415  (help is shown without what plans)

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType


@contextmanager
def refusing() -> Iterator[None]:
    """End with 2 and a sentence for what cannot be planned, measured or read."""
    from headroom.errors import Unmeasurable
    from headroom.planner.errors import ImpossiblePlan

    try:
        yield
    except (ImpossiblePlan, Unmeasurable, ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def show(report: object, views: list[RenderableType] | RenderableType, as_json: bool) -> None:
    """Print the report as JSON, or what people read of it."""
    if as_json:
        typer.echo(json.dumps(report, indent=2, allow_nan=False))
        return
    from rich.console import Console, Group

    console = Console(highlight=False, soft_wrap=True)
    console.print(Group(*views) if isinstance(views, list) else views)
