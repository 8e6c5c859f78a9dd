"""Summarizes one service from its stored object: SLO target, state, replicas, accelerators. Pure.

What the object does not say is None, never zero. Objects written by another version are read
as far as possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headroom.api.service_status.conditions import Conditions, reason_of
from headroom.api.service_status.demand_status import DemandStatus
from headroom.api.service_status.partner_status import PartnerStatus
from headroom.api.service_status.slo_status import SloStatus
from headroom.api.service_status.status import Status
from headroom.console.service_state import State, state_of
from headroom.resources import accelerators

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSummary:
    """One service in a row of a list."""

    namespace: str
    name: str
    uid: str
    state: State
    why: str
    """The condition behind the state: its reason and message."""
    percentile: int | None
    target: str | None
    latency: str | None
    """The measured percentile; `unbounded` where too many requests missed."""
    first_token: str | None
    """Measured time to first token and its target; None without an SLO on it."""
    output_token: str | None
    """Measured time per output token and its target; None without an SLO on it."""
    generation: str
    """The bound of a generating replica, its memory and its tokens per second; empty if none."""
    classes: dict[str, str]
    """Promise and measurement of each class, as text."""
    partner: PartnerStatus | None
    """The other pool of a pair of prefill and decode pools; None for a service without one."""
    arrivals_rps: float | None
    demand: DemandStatus | None
    """Rate that clients want to send; a lower bound where arrivals do not show it."""
    waiting: float | None
    utilization: float | None
    ceiling: float | None
    freshness: str | None
    current: int
    """Replicas that the workload requests."""
    ready: int
    desired: int | None
    """Replicas of the last decision."""
    pending: Mapping[str, int]
    """Replicas that are not ready, by state."""
    min_replicas: int | None
    max_replicas: int | None
    mode: str | None
    accelerator: str
    accelerators: int | None
    """Accelerators of all current replicas; None if unknown, for a targetRef whose pod template was
    not read."""
    reason: str | None
    message: str | None
    decided: str | None
    """Time of the last decision, RFC 3339."""
    slo: SloStatus | None
    conditions: Conditions


def summarize(service: Manifest, accelerators_per_replica: int | None = None) -> ServiceSummary:
    """Summarize one object as the API server returns it.

    `accelerators_per_replica` are those of a targetRef's pod template, if known. A field of another
    type than the schema's, which an older schema may have admitted, is unknown.
    """
    metadata, spec = _of(service, "metadata"), _of(service, "spec")
    status = Status.read(service.get("status"))
    slo, scaling, accelerator = _of(spec, "slo"), _of(spec, "scaling"), _of(spec, "accelerator")
    objective, signals, decision = _of(slo, "latency"), status.signals, status.decision
    first_token = signals.time_to_first_token if signals else None
    output_token = signals.time_per_output_token if signals else None
    state, why = state_of(status.conditions)
    per_replica = accelerators_per_replica
    if not spec.get("targetRef"):
        per_replica = accelerators.counted(accelerators.of_stored(spec))
    return ServiceSummary(
        namespace=_text(metadata.get("namespace")) or "",
        name=_text(metadata.get("name")) or "",
        uid=_text(metadata.get("uid")) or "",
        state=state,
        why=why,
        percentile=_number(objective.get("percentile")),
        target=_text(objective.get("target")),
        latency=signals.latency if signals else None,
        first_token=_promise(slo, "timeToFirstToken", first_token),
        output_token=_promise(slo, "timePerOutputToken", output_token),
        generation=status.generation.sentence if status.generation else "",
        classes={one.name: one.sentence for one in status.classes or ()},
        partner=status.partner,
        arrivals_rps=signals.arrivals_per_second if signals else None,
        demand=status.demand,
        waiting=signals.waiting if signals else None,
        utilization=signals.utilization if signals else None,
        ceiling=_number(slo.get("utilizationCeiling")),
        freshness=signals.freshness if signals else None,
        current=status.replicas,
        ready=status.ready_replicas,
        desired=decision.replicas if decision else None,
        pending=_pending(status),
        min_replicas=_number(scaling.get("minReplicas")),
        max_replicas=_number(scaling.get("maxReplicas")),
        mode=_text(scaling.get("mode")),
        accelerator=_text(accelerator.get("resource")) or "",
        accelerators=None if per_replica is None else status.replicas * per_replica,
        reason=reason_of(status.conditions, decision.reason if decision else None),
        message=decision.message if decision else None,
        decided=decision.time if decision else None,
        slo=status.slo,
        conditions=status.conditions,
    )


def _promise(slo: Manifest, field: str, measured: str | None) -> str | None:
    objective = _of(slo, field)
    if not objective:
        return None
    percentile = _number(objective.get("percentile")) or 95
    return f"{measured or 'unknown'} (p{percentile:g}, target {objective.get('target')})"


def _pending(status: Status) -> dict[str, int]:
    """Return the replicas that are not ready by state, without states that have none."""
    by_state = {
        "warming": status.warming_replicas,
        "unschedulable": status.unschedulable_replicas,
        "broken": status.broken_replicas,
    }
    return {state: number for state, number in by_state.items() if number}


def by_attention(rows: Iterable[ServiceSummary]) -> list[ServiceSummary]:
    """Sort by state; within a state, services without a ready replica first, then by name."""
    order = list(State)

    def key(row: ServiceSummary) -> tuple[int, bool, str, str]:
        return order.index(row.state), row.ready > 0, row.namespace, row.name

    return sorted(rows, key=key)


def summary_json(row: ServiceSummary) -> dict[str, Any]:
    """Return the summary as JSON values, named as in the resource; null is unknown."""
    values = {_camel(key): value for key, value in asdict(row).items()}
    parts = {"demand": row.demand, "partner": row.partner, "slo": row.slo}
    shown = {key: None if part is None else part.manifest() for key, part in parts.items()}
    return values | shown | {"conditions": [one.manifest() for one in row.conditions]}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _number(value: object) -> Any:
    """Return a number of the spec; None for another value."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value if plain and math.isfinite(value) else None  # type: ignore[arg-type]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _of(parent: Manifest, key: str) -> Manifest:
    found = parent.get(key)
    return found if isinstance(found, Mapping) else {}
