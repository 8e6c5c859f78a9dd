"""`headroom doctor`: why services miss their SLO, and what to do."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import TYPE_CHECKING

import typer

from headroom.cli.cluster_options import (
    AllNamespaces,
    Context,
    Kubeconfig,
    Namespace,
    Output,
    OutputOption,
    connection,
)
from headroom.cli.exit_codes import FAILURE, fail_for

if TYPE_CHECKING:
    from headroom.cli.commands.doctor.findings import Diagnosis


def doctor(
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Diagnose why services miss their SLO and suggest fixes. Exits with 1 for any problem."""
    from headroom.cli.commands.doctor.examination import examined
    from headroom.cli.commands.doctor.findings import as_json, as_text, is_well
    from headroom.cli.commands.doctor.gather import gathered
    from headroom.errors import ClusterError

    async def examine() -> tuple[list[Diagnosis], int, str]:
        async with connection(kubeconfig, context) as api:
            chosen = None if all_namespaces else namespace or api.namespace
            facts = await gathered(api, chosen)
        where = "all namespaces" if chosen is None else f"namespace {chosen} (-A: all)"
        return examined(facts), len(facts.services) + len(facts.malformed), where

    try:
        found, services, where = asyncio.run(examine())
    except ClusterError as error:
        fail_for(error)
    json_wanted = output is Output.JSON
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    as_shown = as_text(found, services, where, columns=columns)
    typer.echo(as_json(found, services) if json_wanted else as_shown)
    if not is_well(found):
        raise typer.Exit(FAILURE)
