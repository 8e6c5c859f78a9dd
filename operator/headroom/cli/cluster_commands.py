"""The commands that read a cluster: get, explain, doctor."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from headroom.cli.ending import FAILURE, fail
from headroom.cli.options.cluster import (
    AllNamespaces,
    Context,
    Kubeconfig,
    Namespace,
    Output,
    Printed,
    PrintedTable,
    TableOutput,
)

if TYPE_CHECKING:
    from headroom.cli.doctor.findings import Diagnosis

app = typer.Typer()

COMPLETE_WITHIN_S = 2.0


def _names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a service's name; a cluster that does not answer gives none."""
    from headroom.cli.get import standings
    from headroom.cli.options.cluster import connection
    from headroom.errors import ClusterError

    given = ctx.params
    api = connection(given.get("kubeconfig"), given.get("context"), deadline_s=COMPLETE_WITHIN_S)
    try:
        rows = asyncio.run(standings(api, given.get("namespace")))
    except ClusterError:
        return []
    return [row.name for row in rows if row.name.startswith(incomplete)]


@app.command()
def get(
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    output: PrintedTable = TableOutput.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List the services: what is promised, how it stands, which accelerators it holds."""
    from headroom.cli.get import EVERY, as_json, standings, table
    from headroom.cli.options.cluster import connection
    from headroom.errors import ClusterError

    try:
        api = connection(kubeconfig, context)
        rows = asyncio.run(standings(api, EVERY if all_namespaces else namespace))
    except ClusterError as error:
        fail(str(error))
    if output is TableOutput.JSON:
        typer.echo(as_json(rows))
    elif not rows:
        where = "any namespace" if all_namespaces else f"namespace {namespace or api.namespace}"
        typer.echo(f"No InferenceServices found in {where}.", err=True)
    else:
        typer.echo(table(rows, wide=output is TableOutput.WIDE, namespaced=all_namespaces))


@app.command()
def explain(
    name: Annotated[
        str, typer.Argument(help="Name of the InferenceService.", autocompletion=_names)
    ],
    namespace: Namespace = None,
    output: Printed = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Say why a service has as many replicas as it has, and what one more or less would do."""
    from rich.console import Console

    from headroom.cli.explain import as_json, explained, fetch
    from headroom.cli.options.cluster import connection
    from headroom.errors import ClusterError, NotFound

    try:
        service = asyncio.run(fetch(connection(kubeconfig, context), namespace, name))
    except NotFound as error:
        fail(f"{error}: see `headroom get --all-namespaces`")
    except ClusterError as error:
        fail(str(error))
    if output is Output.JSON:
        typer.echo(as_json(service))
    else:
        Console().print(explained(service))


@app.command()
def doctor(
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    output: Printed = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Look for what keeps services from their promise, and say the remedy; 1 if there is any."""
    from headroom.cli.doctor.examination import examined, is_well
    from headroom.cli.doctor.gathering import gathered
    from headroom.cli.doctor.presentation import as_json, as_text
    from headroom.cli.options.cluster import connection
    from headroom.errors import ClusterError

    async def examine() -> tuple[list[Diagnosis], int]:
        async with connection(kubeconfig, context) as api:
            facts = await gathered(api, None if all_namespaces else namespace or api.namespace)
        return examined(facts), len(facts.services)

    try:
        found, services = asyncio.run(examine())
    except ClusterError as error:
        fail(str(error))
    typer.echo((as_json if output is Output.JSON else as_text)(found, services))
    if not is_well(found):
        raise typer.Exit(FAILURE)
