"""The options by which a command finds its cluster and prints its answer, named as kubectl's."""

# ruff: noqa: PLC0415  (options are shown without the libraries that commands need)

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headroom.adapters.kubernetes_api import KubernetesApi

CLUSTER = "The cluster"


class Output(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


class TableOutput(StrEnum):
    """How a table is printed."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"


Kubeconfig = Annotated[
    str | None,
    typer.Option("--kubeconfig", help="Path of a kubeconfig.", rich_help_panel=CLUSTER),
]
Context = Annotated[
    str | None,
    typer.Option("--context", help="Context of the kubeconfig.", rich_help_panel=CLUSTER),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Namespace; else the context's.", rich_help_panel=CLUSTER
    ),
]
AllNamespaces = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="Every namespace.", rich_help_panel=CLUSTER),
]
Printed = Annotated[Output, typer.Option("--output", "-o", help="How it is printed.")]
PrintedTable = Annotated[TableOutput, typer.Option("--output", "-o", help="How it is printed.")]


def connection(
    kubeconfig: str | None, context: str | None, *, deadline_s: float = 10.0
) -> KubernetesApi:
    """Give the cluster that the options mean, to be opened."""
    from headroom.adapters.kubernetes_api import KubernetesApi

    return KubernetesApi(
        on_call=_uncounted, deadline_s=deadline_s, kubeconfig=kubeconfig, context=context
    )


def _uncounted(verb: str, code: str, seconds: float) -> None:
    """A command keeps no figures."""
