"""`headroom reference`: the reference page as Markdown."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import typer


def reference(context: typer.Context) -> None:
    """Print every field, condition, reason, metric and command as Markdown."""
    from typer.core import TyperGroup

    from headroom.cli.commands.reference.page import page
    from headroom.ops.operator_metrics import OperatorMetrics

    commands = context.find_root().command
    assert isinstance(commands, TyperGroup)
    typer.echo(page(commands, OperatorMetrics().page().decode()), nl=False)
