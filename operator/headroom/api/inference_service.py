"""The InferenceService: one stored object, parsed into values or rejected with all problems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from headroom.api.durations import Duration
from headroom.api.invalid_spec import InvalidSpec, Problem, problems_of, shown
from headroom.api.service_spec.prefill_ref import SELF_RULE
from headroom.api.service_spec.schedules import Floor
from headroom.api.service_spec.spec import Spec
from headroom.scaling.values.policy import Policy

MAX_NAME_LENGTH = 52
"""A ReplicaSet adds eleven characters to the name, and a label has at most 63."""
NAME_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""A Service's name must start with a letter and have no dots."""
NAME_RULE = (
    f"metadata.name must have at most {MAX_NAME_LENGTH} characters (lower-case letters, digits and "
    "-) and start with a letter, because a Service has the same name"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceService:
    """One stored object: its identity and its spec."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: Spec

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> InferenceService:
        """Parse an object from the API server.

        Raises:
            InvalidSpec: with every field that breaks a rule.
        """
        problems: list[Problem] = []
        metadata = body.get("metadata")
        if not isinstance(metadata, Mapping):
            problems.append(_problem("metadata", "must be an object", metadata))
            metadata = {}
        name = _text(metadata, "name", problems)
        if name and (len(name) > MAX_NAME_LENGTH or not re.fullmatch(NAME_PATTERN, name)):
            problems.append(_problem("metadata.name", NAME_RULE, name))
        namespace = _text(metadata, "namespace", problems)
        uid = _text(metadata, "uid", problems)
        generation = metadata.get("generation", 0)
        if not isinstance(generation, int):
            problems.append(_problem("metadata.generation", "must be an integer", generation))
        spec = _spec(body.get("spec"), problems)
        if spec is not None and spec.prefill_ref is not None and spec.prefill_ref.name == name:
            problems.append(_problem("spec.prefillRef.name", SELF_RULE, name))
        if problems or spec is None:
            raise InvalidSpec(problems)
        return cls(
            name=name,
            namespace=namespace,
            uid=uid,
            generation=generation,
            spec=spec,
        )

    @property
    def model_name(self) -> str:
        """Name under which the model is served."""
        return self.spec.model.name or self.name

    @property
    def warmup_max_latency(self) -> Duration:
        """Maximum latency of warm-up requests."""
        return self.spec.warmup.max_latency or self.spec.slo.whole_answer

    def to_policy(self, tick_s: float = 2.0, floor: Floor | None = None) -> Policy:
        """Return the policy of the decision, which is evaluated every `tick_s` seconds.

        Without `floor`, `minReplicas` applies. The decision treats 0 as 1; a later step decides
        whether the last replica is removed.
        """
        least, schedule = floor or Floor(self.spec.scaling.min_replicas)
        slo, scaling = self.spec.slo, self.spec.scaling
        up, down = scaling.scale_up, scaling.scale_down
        return Policy(
            latency_target_s=slo.whole_answer.seconds,
            latency_percentile=(slo.latency.percentile if slo.latency else 95) / 100,
            token_targets=slo.token_targets,
            queue_depth=slo.queue_depth,
            utilization_ceiling=slo.utilization_ceiling,
            min_replicas=max(1, least),
            schedule=schedule,
            max_replicas=scaling.max_replicas,
            scale_up_stabilization_s=up.stabilization_window.seconds,
            scale_up_rate=up.rate.to_limit() if up.rate else None,
            scale_down_stabilization_s=down.stabilization_window.seconds,
            scale_down_rate=down.rate.to_limit() if down.rate else None,
            routing=self.spec.routing.kind,
            priority=scaling.priority,
            tick_s=tick_s,
            warmup_timeout_s=self.spec.warmup.timeout.seconds,
            stale_after_s=self.spec.telemetry.stale_after_s,
        )


def _spec(value: object, problems: list[Problem]) -> Spec | None:
    if not isinstance(value, Mapping):
        problems.append(_problem("spec", "must be an object", value))
        return None
    try:
        return Spec.model_validate(value)
    except ValidationError as error:
        problems.extend(problems_of(error))
        return None


def _text(metadata: Mapping[str, Any], key: str, problems: list[Problem]) -> str:
    value = metadata.get(key)
    if isinstance(value, str) and value:
        return value
    problems.append(_problem(f"metadata.{key}", "must be a non-empty string", value))
    return ""


def _problem(field: str, rule: str, value: object) -> Problem:
    return Problem(field=field, rule=rule, got="nothing" if value is None else shown(value))
