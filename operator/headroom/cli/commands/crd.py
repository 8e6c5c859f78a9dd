"""`headroom crd`: the CustomResourceDefinition as YAML."""

from __future__ import annotations

import typer


def crd() -> None:
    """Print the CustomResourceDefinition as YAML."""
    from headroom.api.schema.crd import render_yaml  # noqa: PLC0415  (help needs no schema)

    typer.echo(render_yaml(), nl=False)
