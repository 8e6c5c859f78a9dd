"""`headroom explain`: a service's last decision, and what one replica more or less would do."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headroom.cli.cluster_options import (
    Context,
    Kubeconfig,
    Namespace,
    Output,
    OutputOption,
    connection,
)
from headroom.cli.commands.get import complete_names
from headroom.cli.exit_codes import fail, fail_for

_PIPE_COLUMNS = 160
"""Width without a terminal: conditions quote long texts."""

if TYPE_CHECKING:
    from headroom.adapters.api_server.kubernetes_api import KubernetesApi


def explain(
    name: Annotated[
        str, typer.Argument(help="Name of the InferenceService.", autocompletion=complete_names)
    ],
    namespace: Namespace = None,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Explain a service's number of replicas, and what one more or one less would do."""
    from headroom.errors import ClusterError, NotFound

    try:
        service = asyncio.run(fetch(connection(kubeconfig, context), namespace, name))
    except NotFound as error:
        fail(f"{error}: see `headroom get --all-namespaces`")
    except ClusterError as error:
        fail_for(error)
    if output is Output.JSON:
        typer.echo(as_json(service))
    else:
        from rich.console import Console

        from headroom.cli.commands.explanation_text import explained

        console = Console()
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console = Console(width=_PIPE_COLUMNS)
        console.print(explained(service))


async def fetch(api: KubernetesApi, namespace: str | None, name: str) -> dict[str, Any]:
    """Read the object, by default in the context's namespace; raise ClusterError."""
    from headroom.api.kind import API_VERSION, KIND
    from headroom.printable import printable_parts

    async with api:
        found = await api.get(API_VERSION, KIND, namespace or api.namespace, name)
    service: dict[str, Any] = printable_parts(found)
    return service


def as_json(service: Mapping[str, Any]) -> str:
    """Format the explanation for programs; null is unknown."""
    from headroom.api.service_status.status import Status
    from headroom.console.summary import summarize, summary_json

    status = Status.read(service.get("status"))
    parts = {
        "decision": status.decision,
        "signals": status.signals,
        "model": status.model,
        "coldStart": status.cold_start,
    }
    shown = {name: None if one is None else one.manifest() for name, one in parts.items()}
    return json.dumps(summary_json(summarize(service)) | shown, indent=2, allow_nan=False)
