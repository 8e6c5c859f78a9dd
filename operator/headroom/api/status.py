"""The status of an InferenceService: what the cluster shows, and what the operator decided and why.

The same values generate the schema and are written, so that the API server never prunes or refuses
what we say. Numbers are rounded to what a person reads, which also keeps a quiet service from being
written at every tick.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Annotated, Any

from pydantic import Field, ValidationError

from headroom.api.conditions import Condition, Conditions, shortened
from headroom.api.conditions import read as conditions_of
from headroom.api.durations import Duration
from headroom.api.timestamps import rfc3339
from headroom.api.values import MapBy, Value
from headroom.scaling.values import CostModel, Decision, ReplicaCounts, Signal, Signals

MAX_CHECKPOINT = 16_384
UNBOUNDED = "unbounded"
"""A latency that no number states: the replicas could not carry the arrivals, or too many requests
missed."""

Count = Annotated[int, Field(ge=0)]
Word = Annotated[str, Field(max_length=64)]
Text = Annotated[str, Field(max_length=4096)]
Time = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]


class CounterfactualStatus(Value):
    """What the model expects at another number of ready replicas and the present arrivals."""

    replicas: Count
    latency: Word
    """The promised percentile, or `unbounded`."""
    utilization: float | None = None


class RecommendationStatus(Value):
    """One rule's answer, not yet bounded."""

    rule: Word
    replicas: int
    detail: Text


class DecisionStatus(Value):
    """The last decision."""

    replicas: Count
    """What the decision asks for."""
    current: Count
    """What the workload was asked for before."""
    direction: Word
    """Up, Down or None."""
    reason: Word
    """The rule or limit that binds."""
    strongest_rule: Word
    """The rule that asked for the most, before limits."""
    message: Text
    """The same in words."""
    time: Time
    counterfactuals: Annotated[
        tuple[CounterfactualStatus, ...], Field(max_length=16, strict=False)
    ] = ()
    recommendations: Annotated[
        tuple[RecommendationStatus, ...], Field(max_length=16, strict=False)
    ] = ()


class GatewayStatus(Value):
    """Requests as clients see them, counted at the gateways; a rate that is absent is not there."""

    arrivals_per_second: float | None = None
    missed_per_second: float | None = None
    """Refused, failed, expired or given up; those beyond a tenant's limits are neither."""
    in_flight: float | None = None
    freshness: Word
    """Fresh, Stale or Absent: of the gateway that was heard least recently."""


class SignalsStatus(Value):
    """What the windows said when it was decided; a signal that is absent is not there."""

    arrivals_per_second: float | None = None
    waiting: float | None = None
    """Requests queued over all replicas, those in a batch not counted."""
    latency: Word | None = None
    """The promised percentile in the stable window; `unbounded` where too many requests missed."""
    latency_source: Word | None = None
    """Where that was measured: Gateway, as clients see it, or Replicas."""
    gateway: GatewayStatus | None = None
    """What the gateways count, where requests come through them."""
    time_to_first_token: Word | None = None
    """Of servers that generate, where it is promised: its percentile in the last minute."""
    time_per_output_token: Word | None = None
    utilization: float | None = None
    freshness: Word
    """Fresh, Stale or Absent: the worst of those that a removal depends on."""


class ModelStatus(Value):
    """What a batch costs: fixedCost + perItemCost x size, for sizes up to maxBatch."""

    fixed_cost: Word
    per_item_cost: Word
    max_batch: Count
    slots: Annotated[int, Field(ge=1)] | None = None
    """Batches that one replica computes at the same time."""

    @property
    def cost(self) -> CostModel | None:
        """The cost to the three digits shown; None if it cannot be read."""
        fixed_s, per_item_s = seconds_of(self.fixed_cost), seconds_of(self.per_item_cost)
        if fixed_s is None or per_item_s is None or self.max_batch == 0:
            return None
        cost = CostModel(
            fixed_s=fixed_s,
            per_item_s=per_item_s,
            max_batch=self.max_batch,
            slots=self.slots or 1,
        )
        return cost if 0 < cost.batch_s(cost.max_batch) < math.inf else None


class ColdStartStatus(Value):
    """How long a new replica takes from creation to ready."""

    p90: Word
    estimated_misses_per_cold_start: float | None = None
    """Requests that miss the target each time that the service starts from no replica, at its last
    arrivals; said in Gateway mode, also where minReplicas is above 0."""


class SloStatus(Value):
    """How the promise was kept over the last 28 days; minutes without traffic do not count."""

    attainment: float | None = None
    """Share of one-minute windows in which the percentile held."""
    windows_met: Count = 0
    windows_missed: Count = 0
    error_budget_remaining: float
    """Share left of the minutes that slo.objective allows; negative when overspent."""
    burn_rate: float | None = None
    """How many times too fast the last hour spent it."""


class Status(Value):
    """What the cluster shows of the service, and what the operator decided."""

    observed_generation: Count = 0
    """Generation of the spec that this status was written for."""
    replicas: Count = 0
    """Replicas that the workload is asked for."""
    ready_replicas: Count = 0
    """Warm and taking requests."""
    warming_replicas: Count = 0
    """On their way, late ones included."""
    unschedulable_replicas: Count = 0
    """Without a node that has room."""
    broken_replicas: Count = 0
    """Unable to get ready as they are."""
    selector: Annotated[str, Field(max_length=512)] = ""
    """Selects the pods of the service."""
    decision: DecisionStatus | None = None
    signals: SignalsStatus | None = None
    model: ModelStatus | None = None
    cold_start: ColdStartStatus | None = None
    slo: SloStatus | None = None
    checkpoint: Annotated[str, Field(max_length=MAX_CHECKPOINT)] | None = None
    """The operator's memory, so that a restart changes nothing. Compact JSON; not an API."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=32, strict=False), MapBy("type")
    ] = ()

    @classmethod
    def read(cls, stored: object) -> Status:
        """Read a stored status; never raises.

        A part that cannot be read is left out as if it were not set, a missing text is empty.
        """
        given = stored if isinstance(stored, Mapping) else {}
        found = conditions_of(given)
        readable: dict[str, Any] = {key: value for key, value in given.items() if key != _LIST}
        while True:
            try:
                return cls.model_validate(readable).model_copy(update={_LIST: found})
            except ValidationError as error:
                readable = _without(readable, error)

    @property
    def memory(self) -> Any:
        """The checkpoint as JSON; None if there is none that can be read."""
        try:
            return None if self.checkpoint is None else json.loads(self.checkpoint)
        except ValueError:
            return None


_LIST = "conditions"


def _without(stored: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
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
    *(SignalsStatus, ModelStatus, ColdStartStatus, SloStatus),
)
_TEXTS = {
    field.alias
    for part in _PARTS
    for field in part.model_fields.values()
    if field.is_required() and field.annotation is str
}


def build(
    *,
    generation: int,
    current: int,
    selector: str,
    conditions: Conditions,
    counts: ReplicaCounts,
    decision: Decision | None = None,
    slo: SloStatus | None = None,
    tokens: Mapping[str, float | None] | None = None,
    gateway: GatewayStatus | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    estimated_misses_per_cold_start: float | None = None,
) -> dict[str, Any]:
    """Render the whole status; without a decision what depends on one is left out.

    A checkpoint larger than the schema admits is left out too: the next start then holds for a
    window, whereas a status that the API server refuses would say nothing at all.
    """
    memory = None if checkpoint is None else json.dumps(checkpoint, separators=(",", ":"))
    status = Status(
        observed_generation=generation,
        replicas=current,
        ready_replicas=counts.ready,
        warming_replicas=counts.warming + counts.late,
        unschedulable_replicas=counts.unschedulable,
        broken_replicas=counts.broken,
        selector=selector,
        decision=_decision(decision) if decision else None,
        signals=_signals(decision, tokens or {}, gateway) if decision else None,
        model=_model(decision.cost) if decision and decision.cost else None,
        cold_start=(
            ColdStartStatus(
                p90=duration_text(decision.cold_start_s),
                estimated_misses_per_cold_start=(
                    None
                    if estimated_misses_per_cold_start is None
                    else float(f"{estimated_misses_per_cold_start:.2g}")
                ),
            )
            if decision and decision.cold_start_s is not None
            else None
        ),
        slo=slo,
        checkpoint=memory if memory is not None and len(memory) <= MAX_CHECKPOINT else None,
        conditions=conditions,
    )
    return status.manifest()


def seconds_of(text: str) -> float | None:
    """Read a time that `duration_text` wrote; None for any other text."""
    if text == UNBOUNDED:
        return math.inf
    try:
        return Duration.parse(text).seconds
    except ValueError:
        return None


def duration_text(seconds: float) -> str:
    """Render a measured time with three digits, which is what it is good for; `unbounded` for inf.

    Raises ValueError for NaN and negative numbers, which are no measurement.
    """
    if seconds == math.inf:
        return UNBOUNDED
    return str(Duration.of_seconds(float(f"{seconds:.3g}")))


def _decision(decision: Decision) -> DecisionStatus:
    most = max(decision.recommendations, key=lambda r: r.replicas, default=None)
    return DecisionStatus(
        replicas=decision.replicas,
        current=decision.current,
        direction=decision.direction,
        reason=decision.reason,
        strongest_rule=most.rule if most else decision.reason,
        message=shortened(decision.message),
        time=rfc3339(decision.time_s),
        counterfactuals=tuple(
            CounterfactualStatus(
                replicas=c.replicas,
                latency=duration_text(c.latency_s),
                utilization=_rounded(c.utilization),
            )
            for c in decision.counterfactuals
        ),
        recommendations=tuple(
            RecommendationStatus(rule=r.rule, replicas=r.replicas, detail=shortened(r.detail))
            for r in decision.recommendations
        ),
    )


def gateway_status(signals: Signals, missed_rps: float | None) -> GatewayStatus:
    """Render what gateways count."""
    return GatewayStatus(
        arrivals_per_second=_value(signals.arrival_rps),
        missed_per_second=_rounded(missed_rps),
        in_flight=_value(signals.in_flight),
        freshness=signals.in_flight.freshness,
    )


def _signals(
    decision: Decision, tokens: Mapping[str, float | None], gateway: GatewayStatus | None
) -> SignalsStatus:
    signals = decision.signals
    latency_s = signals.latency_s.value
    return SignalsStatus(
        arrivals_per_second=_value(signals.arrival_rps),
        waiting=_value(signals.waiting),
        latency=_text(latency_s),
        latency_source=None if latency_s is None else "Gateway" if gateway else "Replicas",
        gateway=gateway,
        time_to_first_token=_text(tokens.get("timeToFirstToken")),
        time_per_output_token=_text(tokens.get("timePerOutputToken")),
        utilization=_rounded(decision.utilization),
        freshness=signals.freshness,
    )


def _model(cost: CostModel) -> ModelStatus:
    return ModelStatus(
        fixed_cost=duration_text(cost.fixed_s),
        per_item_cost=duration_text(cost.per_item_s),
        max_batch=cost.max_batch,
        slots=cost.slots,
    )


def _text(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)


def _value(signal: Signal) -> float | None:
    return _rounded(signal.value)


def _rounded(number: float | None) -> float | None:
    """Round to three decimals; JSON has no infinity, so what is not finite is not shown."""
    return None if number is None or not math.isfinite(number) else round(number, 3)
