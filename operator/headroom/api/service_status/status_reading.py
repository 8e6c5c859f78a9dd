"""Drops the parts of a stored status that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from headroom.api.service_status.class_status import ClassStatus
from headroom.api.service_status.cost_status import ColdStartStatus, ModelStatus
from headroom.api.service_status.decision_status import (
    CounterfactualStatus,
    DecisionStatus,
    RecommendationStatus,
)
from headroom.api.service_status.demand_status import DemandStatus
from headroom.api.service_status.generation_status import GenerationStatus, TokenPromiseStatus
from headroom.api.service_status.signals_status import GatewayStatus, SignalsStatus
from headroom.api.service_status.slo_status import SloStatus
from headroom.api.values import Value


def without_unreadable(stored: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    """Drop what the error names: the value, or the object around a missing number."""
    kept, dropped = deepcopy(dict(stored)), set()
    for each in error.errors():
        path, missing = each["loc"], each["type"] == "missing"
        if missing and path[-1] in _TEXTS:
            _parent(kept, path)[path[-1]] = ""
        else:
            dropped.add(path[:-1] if missing else path)
    for path in sorted(dropped, key=lambda one: [f"{key:>40}" for key in one], reverse=True):
        with suppress(KeyError):  # its parent is dropped too, or was read by another name
            del _parent(kept, path)[path[-1]]
    return kept


def _parent(stored: Any, path: Sequence[int | str]) -> Any:
    for key in path[:-1]:
        stored = stored[key]
    return stored


_PARTS: tuple[type[Value], ...] = (
    *(CounterfactualStatus, RecommendationStatus, DecisionStatus, GatewayStatus),
    *(SignalsStatus, DemandStatus, ModelStatus, ColdStartStatus, SloStatus),
    *(GenerationStatus, TokenPromiseStatus, ClassStatus),
)
_TEXTS = {
    field.alias
    for part in _PARTS
    for field in part.model_fields.values()
    if field.is_required() and field.annotation is str
}
