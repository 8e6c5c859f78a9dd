"""The options that select a cluster and an output format, named as kubectl's."""

# ruff: noqa: PLC0415  (help is shown without the libraries that commands need)

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headroom.adapters.api_server.kubernetes_api import KubernetesApi

CLUSTER = "The cluster"


class Output(StrEnum):
    """The output formats of every command that prints an answer."""

    TEXT = "text"
    JSON = "json"


class TableOutput(StrEnum):
    """The output formats of a table."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"


Kubeconfig = Annotated[
    str | None,
    typer.Option("--kubeconfig", help="Path of a kubeconfig file.", rich_help_panel=CLUSTER),
]
Context = Annotated[
    str | None,
    typer.Option("--context", help="Context of the kubeconfig.", rich_help_panel=CLUSTER),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Namespace; default: the context's.", rich_help_panel=CLUSTER
    ),
]
AllNamespaces = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="All namespaces.", rich_help_panel=CLUSTER),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]
TableOutputOption = Annotated[TableOutput, typer.Option("--output", "-o", help="Output format.")]

ALL_NAMESPACES = ""


def connection(
    kubeconfig: str | None, context: str | None, *, deadline_s: float = 10.0
) -> KubernetesApi:
    """Return a client of the selected cluster, not yet opened."""
    from headroom.adapters.api_server.kubernetes_api import KubernetesApi
    from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection

    return KubernetesApi(
        KubernetesConnection(
            on_call=_ignore_call, deadline_s=deadline_s, kubeconfig=kubeconfig, context=context
        )
    )


def _ignore_call(verb: str, code: str, seconds: float) -> None:
    """Ignore the call: a command has no metrics."""
