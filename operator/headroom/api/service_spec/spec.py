"""`spec`: what users state of a service, field by field, with the rules between fields.

Bounds and defaults are defined here once; the CRD is generated from them. Every field in the schema
is implemented.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.service_spec.class_promises import CLASS_RULES, class_promises
from headroom.api.service_spec.common_metadata import CommonMetadata
from headroom.api.service_spec.model import Model
from headroom.api.service_spec.prefill_ref import PREFILL_RULES, PrefillRef
from headroom.api.service_spec.rollout import Rollout
from headroom.api.service_spec.routing import Routing
from headroom.api.service_spec.routing_rules import TARGET_ROUTING_RULES
from headroom.api.service_spec.runtime import WITHOUT_WARMUP, Runtime
from headroom.api.service_spec.scaling import Scaling, _bounds
from headroom.api.service_spec.service_level import ServiceLevel
from headroom.api.service_spec.target_ref import TargetRef
from headroom.api.service_spec.telemetry_source import Telemetry
from headroom.api.service_spec.token_objectives import TOKEN_RULES
from headroom.api.service_spec.warmup import Warmup
from headroom.api.text_forms import TextForm
from headroom.api.values import Rule, Value, Within
from headroom.scaling.generation.promises.classes import ClassPromise


class Accelerator(Value):
    """Accelerators that each replica requests."""

    resource: Annotated[
        str,
        Field(max_length=317),
        TextForm(
            "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$",
            "must be the name of an extended resource, such as nvidia.com/gpu",
        ),
    ] = "nvidia.com/gpu"
    """Extended resource of the accelerator."""
    count: Annotated[int, Field(ge=0, le=64)] = 1
    """Number of accelerators per replica; 0 requests none."""


class Drain(Value):
    """Termination of replicas."""

    grace_period: Annotated[Duration, Within("1s", "1h")] = Duration.parse("60s")
    """Time that a terminating replica has to finish the requests it accepted."""


_OF_PODS_CEL = {
    "runtime.args": "size(self.runtime.args) > 0",
    "runtime.env": "size(self.runtime.env) > 0",
    "runtime.resources": "has(self.runtime.resources.limits) || "
    "has(self.runtime.resources.requests)",
    "runtime.podTemplate": "has(self.runtime.podTemplate.metadata) || "
    "has(self.runtime.podTemplate.spec)",
    "model.uri": "self.model.uri != ''",
    "rollout": "has(self.rollout.maxSurge) || has(self.rollout.maxUnavailable)",
}
"""Whether each field is set that describes pods which the operator creates, as CEL."""


def _of_pods(spec: Spec) -> list[str]:
    """Return the fields that are set and describe pods which the operator creates."""
    runtime = spec.runtime
    is_set = (
        runtime.args,
        runtime.env,
        runtime.resources.manifest(),
        runtime.pod_template.overlay(),
        spec.model.uri,
        spec.rollout.manifest(),
    )
    return [name for name, found in zip(_OF_PODS_CEL, is_set, strict=True) if found]


class Spec(Value):
    """Desired service level, model server and scaling limits."""

    runtime: Runtime = Runtime()
    """Model server that runs in each replica; with targetRef, how its metrics are read."""
    target_ref: TargetRef | None = None
    """Existing workload to scale instead of a Deployment created by the operator. Only its
    replicas are changed; with routing.mode Gateway clients get an additional Service."""
    prefill_ref: PrefillRef | None = None
    """In a decode pool: the InferenceService in the same namespace that computes its prompts. Both
    then grow together, and neither removes replicas while the other is short of them, misses its
    promise or is not seen. Their ratio is a result."""
    replicas: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Desired replicas where scaling.mode is External; set through the scale subresource."""
    model: Model = Model()
    """Model that each replica serves."""
    accelerator: Accelerator = Accelerator()
    """Accelerators that each replica requests."""
    warmup: Warmup = Warmup()
    """Warm-up that a replica must pass before it takes requests."""
    slo: ServiceLevel
    """Service level objectives."""
    scaling: Scaling = Scaling()
    """Limits and mode of scaling."""
    routing: Routing = Routing()
    """Path of requests to the replicas."""
    telemetry: Telemetry = Telemetry()
    """Source of the metrics of the pods."""
    drain: Drain = Drain()
    """Termination of replicas."""
    rollout: Rollout = Rollout()
    """Replacement of replicas after a change of their pod template. By default a new replica is
    ready before an earlier one stops. Where replicas hold accelerators and the new one finds none
    for as long as a start takes, replicas are replaced in place; a service with a single replica
    then serves nothing for a cold start. A new replica that fails stops none."""
    common_metadata: CommonMetadata = CommonMetadata()
    """Labels and annotations of all objects that the operator creates: Deployment, pods, Services,
    ServiceAccount, PodDisruptionBudget, EndpointSlice. For the pods, runtime.podTemplate has
    precedence. A change replaces the pods, like every change of their template. Labels of the
    InferenceService itself are not copied."""

    rules = (
        Rule(
            field="targetRef",
            cel="has(self.targetRef) != has(self.runtime.image)",
            holds=lambda spec: (spec.target_ref is None) != (spec.runtime.image is None),
            message="spec must set exactly one of runtime.image (the operator creates the pods) "
            "and targetRef (it scales an existing workload)",
            got=lambda spec: "neither" if spec.target_ref is None else "both",
            got_cel="has(self.targetRef) ? 'both' : 'neither'",
        ),
        Rule(
            field="targetRef",
            cel=f"!has(self.targetRef) || !({' || '.join(_OF_PODS_CEL.values())})",
            holds=lambda spec: spec.target_ref is None or not _of_pods(spec),
            message="runtime.args, env, resources, podTemplate, model.uri and rollout must not be "
            "set with targetRef, whose pods the operator does not create",
            got=lambda spec: _of_pods(spec)[0],
            got_cel=" : ".join(f"{cel} ? '{name}'" for name, cel in _OF_PODS_CEL.items()) + " : ''",
        ),
        Rule(
            field="warmup.request",
            cel="has(self.warmup.request) || !has(self.warmup.sender) || "
            f"self.warmup.sender == 'Server' || !(self.runtime.profile in {list(WITHOUT_WARMUP)})",
            holds=lambda spec: (
                spec.warmup.request is not None
                or not spec.warmup.by_operator
                or spec.runtime.profile not in WITHOUT_WARMUP
            ),
            message="warmup.request must be set where warmup.sender is Operator and "
            f"runtime.profile is one of {', '.join(WITHOUT_WARMUP)}, which define no request",
        ),
        Rule(
            field="warmup.sender",
            cel="self.runtime.profile != 'headroom' || (!has(self.warmup.request) && "
            "(!has(self.warmup.sender) || self.warmup.sender == 'Server'))",
            holds=lambda spec: spec.runtime.profile != "headroom" or not spec.warmup.by_operator,
            message="warmup.sender must be Server and warmup.request must not be set where "
            "runtime.profile is headroom, whose server warms itself up",
        ),
        Rule(
            field="targetRef",
            cel="has(self.targetRef) == has(oldSelf.targetRef) && "
            "(!has(self.targetRef) || self.targetRef == oldSelf.targetRef)",
            holds=lambda spec: True,  # only the API server sees the old object
            message="targetRef must not be changed, added or removed: delete the "
            "InferenceService, which leaves the target running, and create another",
        ),
        *TARGET_ROUTING_RULES,
        Rule(
            field="scaling.minReplicas",
            cel="self.scaling.minReplicas > 0 || self.routing.mode == 'Gateway'",
            holds=lambda spec: spec.scaling.min_replicas > 0 or spec.routing.mode == "Gateway",
            message="scaling.minReplicas must be at least 1 unless routing.mode is Gateway, which "
            "holds requests until a replica is warm",
        ),
        Rule(
            field="replicas",
            cel="has(self.replicas) == (self.scaling.mode == 'External')",
            holds=lambda spec: (spec.replicas is not None) == (spec.scaling.mode == "External"),
            message="replicas must be set where scaling.mode is External (status.replicas keeps "
            "the current number), and only there: otherwise set scaling.minReplicas",
            got=lambda spec: (
                f"{'none' if spec.replicas is None else spec.replicas} in mode {spec.scaling.mode}"
            ),
            got_cel="(has(self.replicas) ? 'a number' : 'none') + ' in mode ' + self.scaling.mode",
        ),
        Rule(
            field="replicas",
            cel="!has(self.replicas) || (self.replicas >= self.scaling.minReplicas && "
            "self.replicas <= self.scaling.maxReplicas)",
            holds=lambda spec: (
                spec.replicas is None
                or spec.scaling.min_replicas <= spec.replicas <= spec.scaling.max_replicas
            ),
            message="replicas must be from scaling.minReplicas to scaling.maxReplicas",
            got=lambda spec: f"{spec.replicas}, {_bounds(spec.scaling)}",
        ),
        Rule(
            field="runtime.resources",
            cel="[has(self.runtime.resources.limits) ? self.runtime.resources.limits : {}, "
            "has(self.runtime.resources.requests) ? self.runtime.resources.requests : {}]"
            ".all(amounts, !(self.accelerator.resource in amounts))",
            holds=lambda spec: (
                not any(
                    spec.accelerator.resource in (amounts or {})
                    for amounts in (spec.runtime.resources.limits, spec.runtime.resources.requests)
                )
            ),
            message="runtime.resources must not contain accelerator.resource; set "
            "accelerator.count instead",
        ),
        *TOKEN_RULES,
        *CLASS_RULES,
        *PREFILL_RULES,
    )

    @property
    def class_promises(self) -> tuple[ClassPromise, ...]:
        """The promises of slo and of each class that differs; empty where none does."""
        return class_promises(self.slo.token_targets, self.routing.classes)
