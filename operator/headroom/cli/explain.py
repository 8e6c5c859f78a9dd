"""A service's status in words, with what one replica more or less would do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.adapters.kubernetes_api import KubernetesApi
from headroom.api.conditions import Condition, read
from headroom.api.kind import API_VERSION, KIND
from headroom.console.standing import standing, troubled
from headroom.console.standing_json import standing_json

_COUNTS = {
    "readyReplicas": "ready",
    "warmingReplicas": "warming",
    "unschedulableReplicas": "unschedulable",
    "brokenReplicas": "broken",
}


async def fetch(api: KubernetesApi, namespace: str | None, name: str) -> dict[str, Any]:
    """Read the object, in the context's namespace where none is named; raise ClusterError."""
    async with api:
        return await api.get(API_VERSION, KIND, namespace or api.namespace, name)


def as_json(service: Mapping[str, Any]) -> str:
    """Render the same for programs; null is unknown."""
    status = service.get("status") or {}
    kept = {key: status.get(key) for key in ("decision", "signals", "model", "coldStart")}
    return json.dumps(standing_json(standing(service)) | kept, indent=2, allow_nan=False)


def explained(service: Mapping[str, Any]) -> RenderableType:
    """Render the last decision, its counterfactuals, and what asks for attention."""
    status = service.get("status") or {}
    decision = status.get("decision")
    parts: list[RenderableType] = [_heading(service, status)]
    if decision is None:
        parts.append(Text("No decision yet: the operator has not evaluated this service."))
    else:
        parts += [_decision(decision), _signals(service, status)]
        if decision.get("counterfactuals"):
            parts += [Text(), _table(decision)]
        if recommendations := decision.get("recommendations"):
            parts += [Text(), _recommendations(recommendations)]
    conditions = troubled(read(status))
    if conditions:
        parts += [Text(), _conditions(conditions)]
    return Group(*parts)


def _heading(service: Mapping[str, Any], status: Mapping[str, Any]) -> Text:
    metadata = service["metadata"]
    counts = ", ".join(f"{status[key]} {word}" for key, word in _COUNTS.items() if status.get(key))
    text = Text(f"{metadata['namespace']}/{metadata['name']}", style="bold")
    text.append(f": {status.get('replicas', 0)} replicas", style="not bold")
    return text.append(f" ({counts})" if counts else "", style="not bold")


def _decision(decision: Mapping[str, Any]) -> Text:
    text = Text(f"{decision['reason']}", style="bold cyan")
    return text.append(f": {decision['message']} ({decision['time']})", style="not bold default")


def _signals(service: Mapping[str, Any], status: Mapping[str, Any]) -> Text:
    signals, slo = status.get("signals") or {}, service["spec"]["slo"]
    latency = slo["latency"]
    tail = signals.get("latency", "unknown")
    where = " at the gateway" if signals.get("latencySource") == "Gateway" else ""
    busy, ceiling = _share(signals.get("utilization")), _share(slo.get("utilizationCeiling"))
    measured = (
        f"{_number(signals.get('arrivalsPerSecond'))} arrivals/s",
        f"{_number(signals.get('waiting'))} waiting",
        f"p{latency.get('percentile', 95)} {tail}{where} (target {latency['target']})",
        f"utilization {busy} (ceiling {ceiling})",
        f"signals {signals.get('freshness', 'Absent')}",
    )
    return Text(", ".join(measured))


def _table(decision: Mapping[str, Any]) -> Table:
    table = Table(title="What the model expects", title_justify="left", box=None, pad_edge=False)
    for column in ("replicas", "latency", "utilization"):
        table.add_column(column, justify="right")
    for row in decision["counterfactuals"]:
        chosen = row["replicas"] == decision["replicas"]
        table.add_row(
            f"{row['replicas']}{' *' if chosen else '  '}",
            row["latency"],
            _share(row.get("utilization")),
            style="bold" if chosen else "",
        )
    return table


def _recommendations(recommendations: list[Mapping[str, Any]]) -> Table:
    table = Table(title="What each rule wants", title_justify="left", box=None, pad_edge=False)
    table.add_column("rule")
    table.add_column("replicas", justify="right")
    table.add_column("because")
    for row in recommendations:
        table.add_row(row["rule"], str(row["replicas"]), row["detail"])
    return table


def _conditions(conditions: list[Condition]) -> Table:
    table = Table(title="What asks for attention", title_justify="left", box=None, pad_edge=False)
    for column in ("condition", "reason", "message"):
        table.add_column(column)
    for row in conditions:
        table.add_row(f"{row.type}={row.status}", row.reason, row.message)
    return table


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"
