"""The status of an InferenceService: observed state, the last decision and its reasons.

The values that are written also generate the schema, so the API server never prunes or rejects
them. Numbers are rounded for readers, which also avoids a write of an idle service at every tick.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from headroom.api.service_status.class_status import ClassStatus
from headroom.api.service_status.conditions import Condition
from headroom.api.service_status.conditions import read as conditions_of
from headroom.api.service_status.cost_status import ColdStartStatus, ModelStatus
from headroom.api.service_status.decision_status import DecisionStatus
from headroom.api.service_status.demand_status import DemandStatus
from headroom.api.service_status.generation_status import GenerationStatus
from headroom.api.service_status.partner_status import PartnerStatus
from headroom.api.service_status.signals_status import SignalsStatus
from headroom.api.service_status.slo_status import SloStatus
from headroom.api.service_status.status_reading import without_unreadable
from headroom.api.service_status.status_types import Count
from headroom.api.values import MapBy, Value

MAX_CHECKPOINT = 16_384


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
    reason: Annotated[str, Field(max_length=128)] | None = None
    """Most important reason: that of Ready if it is False, that of an obstacle to writing replicas,
    or else that of the last decision; CollectingMetrics while the history is too short for one."""
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
    partner: PartnerStatus | None = None
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
                readable = without_unreadable(readable, error)

    @property
    def memory(self) -> Any:
        """The checkpoint as JSON; None if there is none that can be read."""
        try:
            return None if self.checkpoint is None else json.loads(self.checkpoint)
        except (ValueError, RecursionError):  # a nest of 5000 brackets is 5 kB of text
            return None


_LIST = "conditions"
