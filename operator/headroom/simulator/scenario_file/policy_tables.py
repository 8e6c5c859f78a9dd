"""The tables of a scenario file that give the policy: the SLO and the limits of scaling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from headroom.api.durations import Duration
from headroom.api.values import Within
from headroom.scaling.values.policy import RateLimit
from headroom.simulator.scenario_file.table import MANY, Replicas, Span, Table, rule_broken


class SloTable(Table):
    """The service level objective."""

    renamed: ClassVar[Mapping[str, str]] = {"target": "latency_target_s"}

    target: Span
    percentile: Literal[90, 95, 99] | None = None
    queue_depth: Annotated[int, Field(ge=1, le=100_000)] | None = None
    utilization_ceiling: Annotated[float, Field(gt=0, le=0.95)] | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields of a policy that the file sets."""
        fields = super().given()
        if "percentile" in fields:
            fields["latency_percentile"] = fields.pop("percentile") / 100
        return fields


class RateTable(Table):
    """The maximum change within a period."""

    period: Annotated[Duration, Within("1s", "1h")]
    replicas: Replicas | None = None
    percent: Replicas | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.replicas is None and self.percent is None:
            raise rule_broken("must have replicas, percent or both", "neither")
        return self


class DirectionTable(Table):
    """Speed at which replicas are added or removed."""

    stabilization: Annotated[Duration, Within("0s", "1h")] | None = None
    rate: RateTable | None = None


class ScalingTable(Table):
    """The limits of the autoscaler."""

    min_replicas: Replicas | None = None
    max_replicas: Replicas | None = None
    initial_replicas: Annotated[int, Field(ge=0, le=10_000)] | None = None
    priority: Annotated[int, Field(ge=-MANY, le=MANY)] | None = None
    scale_up: DirectionTable = DirectionTable()
    scale_down: DirectionTable = DirectionTable()

    def given(self) -> dict[str, Any]:
        """Return the fields of a policy that the file sets."""
        fields = super().given()
        fields.pop("initial_replicas", None)
        for key in ("scale_up", "scale_down"):
            fields.pop(key, None)
            direction: DirectionTable = getattr(self, key)
            if direction.stabilization is not None:
                fields[f"{key}_stabilization_s"] = direction.stabilization.seconds
            if direction.rate is not None:
                fields[f"{key}_rate"] = RateLimit(**direction.rate.given())
        return fields
