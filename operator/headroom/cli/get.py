"""All services as a table or as JSON: what is promised, how it stands, what it holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headroom.adapters.kubernetes_api import KubernetesApi
from headroom.api.kind import API_VERSION, KIND
from headroom.console.standing import Standing, standing
from headroom.console.standing_json import standing_json

UNKNOWN = "-"
_GAP = "   "


EVERY = ""
"""Every namespace; None is that of the context."""


async def standings(api: KubernetesApi, namespace: str | None) -> list[Standing]:
    """Read the services of a namespace, by name; raise ClusterError."""
    async with api:
        within = api.namespace if namespace is None else namespace
        found = await api.list_all(API_VERSION, KIND, within or None)
    rows = [standing(one) for one in found]
    return sorted(rows, key=lambda row: (row.namespace, row.name))


def table(rows: Sequence[Standing], *, wide: bool, namespaced: bool) -> str:
    """Lay the services out as kubectl does; numbers to the right."""
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


def as_json(rows: Sequence[Standing]) -> str:
    """Render the services for programs; null is unknown."""
    return json.dumps({"services": [standing_json(row) for row in rows]}, indent=2, allow_nan=False)


def _promise(row: Standing) -> str:
    if row.target is None:
        return UNKNOWN
    return f"<{row.target}" if row.percentile is None else f"p{row.percentile}<{row.target}"


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0%}"


def _replicas(row: Standing) -> str:
    coming = "".join(f", {number} {word}" for word, number in row.coming.items())
    return f"{row.ready}/{row.current}{coming}"


_COLUMNS: list[tuple[str, str, Any]] = [
    ("NAME", "<", lambda row: row.name),
    ("STATE", "<", lambda row: row.state.value),
    ("PROMISE", "<", _promise),
    ("MEASURED", ">", lambda row: row.measured or UNKNOWN),
    ("ARRIVALS/S", ">", lambda row: _number(row.arrivals_rps)),
    ("WAITING", ">", lambda row: _number(row.waiting)),
    ("UTILIZATION", ">", lambda row: _share(row.utilization)),
    ("READY", ">", _replicas),
    ("DESIRED", ">", lambda row: UNKNOWN if row.desired is None else str(row.desired)),
    ("ACCELERATORS", ">", lambda row: str(row.accelerators)),
    ("REASON", "<", lambda row: row.reason or UNKNOWN),
]
_WIDE: list[tuple[str, str, Any]] = [
    ("CEILING", ">", lambda row: _share(row.ceiling)),
    ("MIN", ">", lambda row: UNKNOWN if row.least is None else str(row.least)),
    ("MAX", ">", lambda row: UNKNOWN if row.most is None else str(row.most)),
    ("MODE", "<", lambda row: row.mode or UNKNOWN),
    ("ACCELERATOR", "<", lambda row: row.accelerator or UNKNOWN),
    ("DECIDED", "<", lambda row: row.decided or UNKNOWN),
    ("WHY", "<", lambda row: row.why),
]
