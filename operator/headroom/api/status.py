"""The status of an InferenceService: observed state, the last decision and its reasons.

The values that are written also generate the schema, so the API server never prunes or rejects
them. Numbers are rounded for readers, which also avoids a write of an idle service at every tick.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Annotated, Any

from pydantic import Field, ValidationError

from headroom.api.class_status import ClassStatus
from headroom.api.conditions import Condition
from headroom.api.conditions import read as conditions_of
from headroom.api.demand_status import DemandStatus
from headroom.api.durations import Duration
from headroom.api.generation_status import (
    GenerationStatus,
    TokenPromiseStatus,
)
from headroom.api.status_types import Count, Text, Time, Word
from headroom.api.values import MapBy, Value
from headroom.scaling.values.observation import CostModel

MAX_CHECKPOINT = 16_384
UNBOUNDED = "unbounded"
"""An infinite latency: the replicas cannot process the arrivals, or too many requests missed."""


class CounterfactualStatus(Value):
    """Prediction for another number of ready replicas at the current arrival rate."""

    replicas: Count
    """Number of ready replicas."""
    latency: Word
    """Latency at the SLO percentile, or `unbounded`. Where status.generation.sizedBy is Model it
    stands for all promises and is the time of no request; `headroom explain` shows its share."""
    utilization: float | None = None
    """Arrival rate divided by full-batch throughput."""


class RecommendationStatus(Value):
    """Recommendation of one rule, before limits."""

    rule: Word
    """Name of the rule."""
    replicas: int
    """Recommended replicas."""
    detail: Text
    """How the rule computed the number."""


class DecisionStatus(Value):
    """The last scaling decision."""

    replicas: Count
    """Desired replicas."""
    current: Count
    """Replicas of the workload before the decision."""
    direction: Word
    """Up, Down or None."""
    reason: Word
    """The rule or limit that determined the desired replicas."""
    strongest_rule: Word
    """The rule that recommended the most replicas, before limits."""
    message: Text
    """The decision as text."""
    time: Time
    """When the decision was made."""
    counterfactuals: Annotated[
        tuple[CounterfactualStatus, ...], Field(max_length=16, strict=False)
    ] = ()
    """Predictions for one replica less, the decided number and one more."""
    recommendations: Annotated[
        tuple[RecommendationStatus, ...], Field(max_length=16, strict=False)
    ] = ()
    """Recommendation of each rule, before limits."""


class GatewayStatus(Value):
    """Requests counted at the gateways. Unknown values are omitted."""

    arrivals_per_second: float | None = None
    """Arrival rate."""
    missed_per_second: float | None = None
    """Rejected, failed, expired or cancelled requests, without those beyond a tenant's limits."""
    in_flight: float | None = None
    """Requests in flight."""
    freshness: Word
    """Fresh, Stale or Missing: of the gateway with the oldest metrics."""


class SignalsStatus(Value):
    """Signal values used for the last decision. Missing signals are omitted."""

    arrivals_per_second: float | None = None
    """Arrival rate."""
    waiting: float | None = None
    """Queued requests of all replicas, without those in a batch."""
    latency: Word | None = None
    """Latency at the SLO percentile in the stable window; `unbounded` where too many requests
    missed."""
    latency_source: Word | None = None
    """Where latency was measured: Gateway (client side) or Replicas."""
    gateway: GatewayStatus | None = None
    """Counts of the gateways, where routing.mode is Gateway."""
    time_to_first_token: Word | None = None
    """Time to first token at its SLO percentile in the last minute, where it has an SLO."""
    time_per_output_token: Word | None = None
    """Time per output token at its SLO percentile in the last minute, where it has an SLO."""
    utilization: float | None = None
    """Arrival rate divided by the full-batch throughput of the ready replicas."""
    freshness: Word
    """Fresh, Stale or Missing: the worst of the signals that removals depend on."""


class ModelStatus(Value):
    """Learned execution time of a batch: fixedCost + perItemCost x size, up to maxBatch."""

    fixed_cost: Word
    """Time per batch, independent of its size."""
    per_item_cost: Word
    """Additional time per request in the batch."""
    max_batch: Count
    """Maximum batch size."""
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
    """Time that a new replica takes from node assignment to ready."""

    p90: Word
    """90th percentile of the measured cold starts."""
    estimated_misses_per_cold_start: float | None = None
    """Requests that miss the target each time the service starts from zero, estimated from the last
    arrival rate. Reported in Gateway mode, also where minReplicas is above 0."""


class SloStatus(Value):
    """SLO report of the last 28 days. One-minute windows without traffic do not count."""

    attainment: float | None = None
    """Share of one-minute windows that met the latency target."""
    windows_met: Count = 0
    """One-minute windows that met the latency target."""
    windows_missed: Count = 0
    """One-minute windows that missed the latency target."""
    error_budget_remaining: float
    """Remaining share of the error budget; negative when overspent."""
    burn_rate: float | None = None
    """Error budget spent in the last hour, relative to the rate that spends all of it in 28
    days."""
    late_share: float | None = None
    """Share of the last hour's requests that missed the latency target, without those that fail
    whatever the load."""
    margin: float | None = None
    """Learned factor on the replicas that carry the arrivals: above 1 where bursts made requests
    late."""

    @property
    def sentence(self) -> str:
        """The margin and its cause; empty while no request of the last hour ended."""
        if self.late_share is None or self.margin is None:
            return ""
        late = f"{100 * self.late_share:.3g}% of the last hour's requests were late"
        return f"margin {self.margin:.3g}x: {late}"


class Status(Value):
    """Observed state of the service and the last decision."""

    observed_generation: Count = 0
    """Generation of the spec that this status was written for."""
    replicas: Count = 0
    """Replicas that the workload is set to."""
    ready_replicas: Count = 0
    """Replicas that are warm and take requests."""
    warming_replicas: Count = 0
    """Replicas that are starting, including late ones."""
    unschedulable_replicas: Count = 0
    """Replicas that fit on no node."""
    broken_replicas: Count = 0
    """Replicas that cannot become ready: image pull error, crash loop, warm-up timeout."""
    selector: Annotated[str, Field(max_length=512)] = ""
    """Label selector of the pods."""
    decision: DecisionStatus | None = None
    """The last scaling decision."""
    signals: SignalsStatus | None = None
    demand: DemandStatus | None = None
    model: ModelStatus | None = None
    generation: GenerationStatus | None = None
    classes: (
        Annotated[tuple[ClassStatus, ...], Field(max_length=8, strict=False), MapBy("name")] | None
    ) = None
    """Classes in routing.classes whose promises differ from those of slo."""
    cold_start: ColdStartStatus | None = None
    slo: SloStatus | None = None
    checkpoint: Annotated[str, Field(max_length=MAX_CHECKPOINT)] | None = None
    """State of the operator that survives a restart, as compact JSON; not an API."""
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
        except (ValueError, RecursionError):  # a nest of 5000 brackets is 5 kB of text
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
    *(SignalsStatus, DemandStatus, ModelStatus, ColdStartStatus, SloStatus),
    *(GenerationStatus, TokenPromiseStatus, ClassStatus),
)
_TEXTS = {
    field.alias
    for part in _PARTS
    for field in part.model_fields.values()
    if field.is_required() and field.annotation is str
}


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
