"""How a service stands, as JSON for programs: named as in the resource, null is unknown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from headroom.console.standing import Standing


def standing_json(row: Standing) -> dict[str, Any]:
    """Give one service as JSON values."""
    conditions = [condition.manifest() for condition in row.conditions]
    values = {_camel(key): value for key, value in asdict(row).items()}
    return values | {"conditions": conditions}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
