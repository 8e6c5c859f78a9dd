"""`spec`: what is promised, with what, within which bounds.

Bounds and defaults stand here once; the CRD is generated from them. Every field works: what is not
implemented is not in the schema.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.model import Model
from headroom.api.routing import Routing
from headroom.api.runtime import WITHOUT_WARMUP, Runtime
from headroom.api.schedules import Schedule
from headroom.api.target_ref import TargetRef
from headroom.api.telemetry_source import Telemetry
from headroom.api.token_objectives import TOKEN_RULES, TokenObjective
from headroom.api.values import MapBy, Rule, Value, Within
from headroom.api.warmup import Latency, Warmup
from headroom.scaling.values import RateLimit

StabilizationWindow = Annotated[Duration, Within("0s", "1h")]


class Accelerator(Value):
    """What a replica needs of the cluster's accelerators."""

    resource: Annotated[
        str,
        Field(
            max_length=317,
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$",
        ),
    ] = "nvidia.com/gpu"
    """Extended resource that stands for an accelerator."""
    count: Annotated[int, Field(ge=0, le=64)] = 1
    """Accelerators per replica; 0 requests none."""


class LatencyObjective(Value):
    """The promised tail."""

    percentile: Literal[90, 95, 99] = 95
    """Percentile that the target bounds. A refused, expired, failed or lost request counts as
    infinitely slow."""
    target: Latency
    """The percentile must stay below this."""


class ServiceLevel(Value):
    """The promise."""

    latency: LatencyObjective
    """Tail latency, measured by the server from the arrival of a request to its answer."""
    time_to_first_token: TokenObjective | None = None
    """Time from the arrival of a request to its first token, of servers that generate."""
    time_per_output_token: TokenObjective | None = None
    """Time between two tokens after the first, a mean per request, of servers that generate."""
    queue_depth: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Waiting requests per replica that are tolerated; without it the largest batch of the
    model."""
    utilization_ceiling: float = 0.8
    """Share of the full-batch throughput of the ready replicas that arrivals may take after any
    decision."""
    objective: float = 0.99
    """Share of one-minute windows in which the percentile is to hold; the rest, over 28 days, is
    the error budget. It is reported and alerted on, and decides nothing."""

    rules = (
        Rule(
            field="objective",
            cel="self.objective >= 0.5 && self.objective <= 0.9999",
            holds=lambda slo: 0.5 <= slo.objective <= 0.9999,
            message="slo.objective must be from 0.5 to 0.9999",
        ),
        # Not as minimum and maximum: of an integer such as 80 the API server would say that it
        # "should be less than or equal to 0", since it prints such bounds without their decimals.
        Rule(
            field="utilizationCeiling",
            cel="self.utilizationCeiling > 0.0 && self.utilizationCeiling <= 0.95",
            holds=lambda slo: 0 < slo.utilization_ceiling <= 0.95,
            message="slo.utilizationCeiling must be above 0 and at most 0.95",
        ),
    )


class Rate(Value):
    """At most so much change within a period; the larger of the two counts."""

    period: Annotated[Duration, Within("1s", "30m")]
    """Time over which changes are added up."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Replicas per period."""
    percent: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Percent, per period, of the replicas at its start."""

    rules = (
        Rule(
            cel="has(self.replicas) || has(self.percent)",
            holds=lambda rate: rate.replicas is not None or rate.percent is not None,
            message="rate needs replicas, percent or both",
        ),
    )

    def to_limit(self) -> RateLimit:
        """Give the decision's value."""
        return RateLimit(
            period_s=self.period.seconds, replicas=self.replicas or 0, percent=self.percent or 0
        )


class ScaleUp(Value):
    """How fast replicas are added."""

    stabilization_window: StabilizationWindow = Duration.parse("0s")
    """More must be wanted for this long before it is asked for."""
    rate: Rate | None = None
    """Without it, as many as are wanted at once."""


class ScaleDown(Value):
    """How fast replicas are removed."""

    stabilization_window: StabilizationWindow = Duration.parse("90s")
    """Every rule must agree with fewer for this long, and no less than a cold start: a measured
    one, before the first what an unfinished one has taken so far."""
    rate: Rate | None = None
    """Without it, as many as are no longer wanted at once."""


class ScaleToZero(Value):
    """When the last replica is removed. The next request starts one, and is held meanwhile."""

    idle_timeout: Annotated[Duration, Within("10s", "24h")] = Duration.parse("10m")
    """Time without requests after which the last replica is removed. Requires minReplicas 0."""


class Scaling(Value):
    """What the operator may do to the number of replicas."""

    mode: Literal["Auto", "Recommend", "External"] = "Auto"
    """Auto writes replicas; Recommend writes the decision to the status, and replicas only at
    creation; External follows spec.replicas, which kubectl scale, an HPA or KEDA may set."""
    min_replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Never fewer. 0 is possible where routing.mode is Gateway."""
    scale_to_zero: ScaleToZero = ScaleToZero()
    """When the last replica is removed. Requires minReplicas 0."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 20
    """Never more, whatever the promise needs."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Of several services that compete for the last accelerators, the highest goes first. A lower
    one yields replicas above its minReplicas."""
    scale_up: ScaleUp = ScaleUp()
    """How fast replicas are added."""
    scale_down: ScaleDown = ScaleDown()
    """How fast replicas are removed."""
    schedules: Annotated[
        tuple[Schedule, ...], Field(max_length=16, strict=False), MapBy("name")
    ] = ()
    """Higher floors at certain times."""

    rules = (
        Rule(
            field="schedules",
            cel="self.schedules.all(one, one.minReplicas <= self.maxReplicas)",
            holds=lambda scaling: all(
                one.min_replicas <= scaling.max_replicas for one in scaling.schedules
            ),
            message="the minReplicas of each of scaling.schedules must be at most "
            "scaling.maxReplicas",
        ),
        Rule(
            field="minReplicas",
            cel="self.minReplicas <= self.maxReplicas",
            holds=lambda scaling: scaling.min_replicas <= scaling.max_replicas,
            message="scaling.minReplicas must be at most scaling.maxReplicas",
        ),
    )


class Drain(Value):
    """How a replica leaves."""

    grace_period: Annotated[Duration, Within("1s", "1h")] = Duration.parse("60s")
    """Time that a leaving replica has to finish the requests it accepted."""


class Spec(Value):
    """What is promised, with what, within which bounds."""

    runtime: Runtime = Runtime()
    """What runs in a replica; beside targetRef, how it is measured."""
    target_ref: TargetRef | None = None
    """A workload that exists, scaled in place of one that the operator makes; never changed but for
    its replicas."""
    replicas: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Replicas wished for from outside, where scaling.mode is External; the scale subresource."""
    model: Model = Model()
    """Which model a replica serves."""
    accelerator: Accelerator = Accelerator()
    """What a replica needs of the cluster's accelerators."""
    warmup: Warmup = Warmup()
    """What a replica must show before it takes requests."""
    slo: ServiceLevel
    """The promise."""
    scaling: Scaling = Scaling()
    """What the operator may do to the number of replicas."""
    routing: Routing = Routing()
    """How requests reach the replicas."""
    telemetry: Telemetry = Telemetry()
    """Where the metrics of the pods are read."""
    drain: Drain = Drain()
    """How a replica leaves."""

    rules = (
        Rule(
            field="targetRef",
            cel="has(self.targetRef) != has(self.runtime.image)",
            holds=lambda spec: (spec.target_ref is None) != (spec.runtime.image is None),
            message="spec needs exactly one of runtime.image, which the operator runs, and "
            "targetRef, which it only scales",
        ),
        Rule(
            field="targetRef",
            cel="!has(self.targetRef) || (size(self.runtime.args) == 0 && "
            "size(self.runtime.env) == 0 && !has(self.runtime.resources.limits) && "
            "!has(self.runtime.resources.requests) && !has(self.runtime.podTemplate.metadata) && "
            "!has(self.runtime.podTemplate.spec) && self.model.uri == '')",
            holds=lambda spec: (
                spec.target_ref is None or not (spec.runtime.describes_pods or spec.model.uri)
            ),
            message="the pods of a targetRef are not ours: runtime.args, env, resources, "
            "podTemplate and model.uri must be left out",
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
            message="warmup.request must say what the operator sends, since runtime.profile does "
            f"not for {', '.join(WITHOUT_WARMUP)}",
        ),
        Rule(
            field="warmup.sender",
            cel="self.runtime.profile != 'headroom' || (!has(self.warmup.request) && "
            "(!has(self.warmup.sender) || self.warmup.sender == 'Server'))",
            holds=lambda spec: spec.runtime.profile != "headroom" or not spec.warmup.by_operator,
            message="warmup must be the server's own where runtime.profile is headroom: leave out "
            "warmup.sender and warmup.request",
        ),
        Rule(
            field="targetRef",
            cel="has(self.targetRef) == has(oldSelf.targetRef) && "
            "(!has(self.targetRef) || self.targetRef == oldSelf.targetRef)",
            holds=lambda spec: True,  # a change is not seen in what it led to
            message="targetRef must stay as it is: delete the InferenceService, which leaves the "
            "target alone, and create another",
        ),
        Rule(
            field="routing.mode",
            cel="!has(self.targetRef) || self.routing.mode == 'Service'",
            holds=lambda spec: spec.target_ref is None or spec.routing.mode == "Service",
            message="routing.mode must be Service beside a targetRef, whose Service is not ours",
        ),
        Rule(
            field="scaling.minReplicas",
            cel="self.scaling.minReplicas > 0 || self.routing.mode == 'Gateway'",
            holds=lambda spec: spec.scaling.min_replicas > 0 or spec.routing.mode == "Gateway",
            message="scaling.minReplicas must be at least 1 where routing.mode is not Gateway, "
            "which alone holds requests until a replica is warm",
        ),
        Rule(
            field="replicas",
            cel="has(self.replicas) == (self.scaling.mode == 'External')",
            holds=lambda spec: (spec.replicas is not None) == (spec.scaling.mode == "External"),
            message="replicas must be there where scaling.mode is External, and there only: to "
            "change nothing, set it to what stands (status.replicas)",
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
            message="runtime.resources must not name accelerator.resource; accelerator.count does",
        ),
        *TOKEN_RULES,
    )
