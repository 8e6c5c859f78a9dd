"""`headroom get`: all services as a table or as JSON."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from headroom.cli.cluster_options import (
    ALL_NAMESPACES,
    AllNamespaces,
    Context,
    Kubeconfig,
    Namespace,
    TableOutput,
    TableOutputOption,
    connection,
)
from headroom.cli.exit_codes import fail_for
from headroom.cli.messages import say

if TYPE_CHECKING:
    from headroom.adapters.api_server.kubernetes_api import KubernetesApi
    from headroom.console.summary import ServiceSummary

UNKNOWN = "-"
_GAP = "   "
COMPLETE_WITHIN_S = 2.0
READ_AT_ONCE = 16
"""Concurrent reads of workloads."""


def get(
    all_namespaces: AllNamespaces = False,
    namespace: Namespace = None,
    output: TableOutputOption = TableOutput.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List the services with their SLO target, state, replicas and accelerators."""
    from headroom.errors import ClusterError

    try:
        api = connection(kubeconfig, context)
        rows = asyncio.run(summaries(api, ALL_NAMESPACES if all_namespaces else namespace))
    except ClusterError as error:
        fail_for(error)
    if output is TableOutput.JSON:
        typer.echo(as_json(rows))
    elif not rows:
        where = "any namespace" if all_namespaces else f"namespace {namespace or api.namespace}"
        say(f"No InferenceServices found in {where}.")
    else:
        typer.echo(table(rows, wide=output is TableOutput.WIDE, namespaced=all_namespaces))


def complete_names(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a service's name; without an answer of the cluster, nothing."""
    from headroom.errors import ClusterError

    given = context.params
    api = connection(given.get("kubeconfig"), given.get("context"), deadline_s=COMPLETE_WITHIN_S)
    try:
        rows = asyncio.run(summaries(api, given.get("namespace")))
    except ClusterError:
        return []
    return [row.name for row in rows if row.name.startswith(incomplete)]


async def summaries(api: KubernetesApi, namespace: str | None) -> list[ServiceSummary]:
    """Read the services of a namespace, None is the context's, by name; raise ClusterError."""
    from headroom.api.kind import API_VERSION, KIND
    from headroom.console.summary import summarize
    from headroom.printable import printable_parts

    async with api:
        within = api.namespace if namespace is None else namespace
        found = await api.list_all(API_VERSION, KIND, within or None)
        few = asyncio.Semaphore(READ_AT_ONCE)
        held = await asyncio.gather(*(_accelerators_per_replica(api, one, few) for one in found))
    rows = [summarize(printable_parts(one), count) for one, count in zip(found, held, strict=True)]
    return sorted(rows, key=lambda row: (row.namespace, row.name))


async def _accelerators_per_replica(
    api: KubernetesApi, service: dict[str, Any], few: asyncio.Semaphore
) -> int | None:
    """Read the count from the pod template of a targetRef; None without one or if unreadable."""
    from headroom.errors import ClusterError
    from headroom.resources import accelerators

    try:
        target = service["spec"]["targetRef"]
        named = target["apiVersion"], target["kind"], service["metadata"]["namespace"]
        async with few:
            workload = await api.get(*named, target["name"])
    except (ClusterError, KeyError, TypeError):  # an older schema may have admitted anything
        return None
    held = accelerators.of_workload(workload)
    return None if held is None else accelerators.counted(held)


def table(rows: Sequence[ServiceSummary], *, wide: bool, namespaced: bool) -> str:
    """Format the services as kubectl does, numbers to the right."""
    columns = [*_COLUMNS, *(_WIDE if wide else ())]
    if namespaced:
        columns.insert(0, ("NAMESPACE", "<", lambda row: row.namespace))
    cells = [[title for title, _, _ in columns]]
    cells += [[cell(row) for _, _, cell in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    return "\n".join(
        _GAP.join(
            f"{text:{side}{width}}"
            for text, (_, side, _), width in zip(line, columns, widths, strict=True)
        ).rstrip()
        for line in cells
    )


def as_json(rows: Sequence[ServiceSummary]) -> str:
    """Format the services for programs; null is unknown."""
    from headroom.console.summary import summary_json

    return json.dumps({"services": [summary_json(row) for row in rows]}, indent=2, allow_nan=False)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0%}"


def _replicas(row: ServiceSummary) -> str:
    pending = "".join(f", {number} {word}" for word, number in row.pending.items())
    return f"{row.ready}/{row.current}{pending}"


_COLUMNS: list[tuple[str, str, Any]] = [
    ("NAME", "<", lambda row: row.name),
    ("STATE", "<", lambda row: row.state.value),
    ("LATENCY", ">", lambda row: row.latency or UNKNOWN),
    ("TARGET", ">", lambda row: row.target or UNKNOWN),
    ("DEMAND", ">", lambda row: UNKNOWN if row.demand is None else row.demand.rate),
    ("WAITING", ">", lambda row: _number(row.waiting)),
    ("UTILIZATION", ">", lambda row: _share(row.utilization)),
    ("READY", ">", _replicas),
    ("DESIRED", ">", lambda row: UNKNOWN if row.desired is None else str(row.desired)),
    (
        "ACCELERATORS",
        ">",
        lambda row: UNKNOWN if row.accelerators is None else str(row.accelerators),
    ),
    ("REASON", "<", lambda row: row.reason or UNKNOWN),
]
_WIDE: list[tuple[str, str, Any]] = [
    ("ARRIVALS/S", ">", lambda row: _number(row.arrivals_rps)),
    ("PERCENTILE", ">", lambda row: UNKNOWN if row.percentile is None else f"p{row.percentile}"),
    ("TTFT", "<", lambda row: row.first_token or UNKNOWN),
    ("TPOT", "<", lambda row: row.output_token or UNKNOWN),
    ("CEILING", ">", lambda row: _share(row.ceiling)),
    ("MIN", ">", lambda row: UNKNOWN if row.min_replicas is None else str(row.min_replicas)),
    ("MAX", ">", lambda row: UNKNOWN if row.max_replicas is None else str(row.max_replicas)),
    ("MODE", "<", lambda row: row.mode or UNKNOWN),
    ("ACCELERATOR", "<", lambda row: row.accelerator or UNKNOWN),
    ("DECIDED", "<", lambda row: row.decided or UNKNOWN),
    ("WHY", "<", lambda row: row.why),
]
