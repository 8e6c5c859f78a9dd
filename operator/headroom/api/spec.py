"""`spec`: the SLO, the server that must meet it, and the limits of scaling.

Bounds and defaults are defined here once; the CRD is generated from them. Every field in the schema
is implemented.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.class_promises import CLASS_RULES, class_promises
from headroom.api.durations import Duration
from headroom.api.model import Model
from headroom.api.objectives import LatencyObjective, TokenObjective, target_of
from headroom.api.routing import Routing
from headroom.api.routing_rules import TARGET_ROUTING_RULES
from headroom.api.runtime import WITHOUT_WARMUP, Runtime
from headroom.api.schedules import Schedule
from headroom.api.target_ref import TargetRef
from headroom.api.telemetry_source import Telemetry
from headroom.api.token_objectives import TOKEN_RULES
from headroom.api.values import MapBy, Rule, Value, Within
from headroom.api.warmup import Warmup
from headroom.scaling.generation.classes import ClassPromise
from headroom.scaling.values.policy import RateLimit
from headroom.scaling.values.tokens import TokenTargets

StabilizationWindow = Annotated[Duration, Within("0s", "1h")]


class Accelerator(Value):
    """Accelerators that each replica requests."""

    resource: Annotated[
        str,
        Field(
            max_length=317,
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$",
        ),
    ] = "nvidia.com/gpu"
    """Extended resource of the accelerator."""
    count: Annotated[int, Field(ge=0, le=64)] = 1
    """Number of accelerators per replica; 0 requests none."""


ANSWER_TOKENS = 1000
LONGEST_ANSWER = Duration.parse("10m")


class ServiceLevel(Value):
    """Service level objectives."""

    latency: LatencyObjective | None = None
    """Tail latency, measured by the server from the arrival of a request to its response. Required
    unless timeToFirstToken or timePerOutputToken is set."""
    time_to_first_token: TokenObjective | None = None
    """Time from the arrival of a request to its first token, for generative servers."""
    time_per_output_token: TokenObjective | None = None
    """Mean time between tokens after the first, per request, for generative servers."""
    queue_depth: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Queued requests per replica that are tolerated. Default: the maximum batch size of the
    model."""
    utilization_ceiling: float = 0.8
    """Maximum utilization after any decision: arrival rate divided by the full-batch throughput of
    the ready replicas."""
    objective: float = 0.99
    """Share of one-minute windows that must meet the latency target; the rest, over 28 days, is the
    error budget. It is used for reports and alerts, not for decisions."""

    @property
    def whole_answer(self) -> Duration:
        """Time within which an answer is of use: the latency target, where there is one.

        Without one it bounds requests in flight and warm-up, and no condition depends on it: an
        answer of 1000 tokens within both token SLOs, at most ten minutes.
        """
        if self.latency is not None:
            return self.latency.target
        first, token = self.time_to_first_token, self.time_per_output_token
        if token is None:
            return LONGEST_ANSWER
        seconds = token.target.seconds * ANSWER_TOKENS
        seconds += first.target.seconds if first is not None else 0.0
        return Duration.of_seconds(min(seconds, LONGEST_ANSWER.seconds))

    @property
    def token_targets(self) -> TokenTargets | None:
        """The promises of a generating service; None without one on tokens."""
        if self.time_to_first_token is None and self.time_per_output_token is None:
            return None
        return TokenTargets(
            first_token=target_of(self.time_to_first_token),
            output_token=target_of(self.time_per_output_token),
            latency=target_of(self.latency),
        )

    rules = (
        Rule(
            field="latency",
            cel="has(self.latency) || has(self.timeToFirstToken) || has(self.timePerOutputToken)",
            holds=lambda slo: (
                slo.latency is not None
                or slo.time_to_first_token is not None
                or slo.time_per_output_token is not None
            ),
            message="slo must set latency, timeToFirstToken or timePerOutputToken",
        ),
        Rule(
            field="objective",
            cel="self.objective >= 0.5 && self.objective <= 0.9999",
            holds=lambda slo: 0.5 <= slo.objective <= 0.9999,
            message="slo.objective must be from 0.5 to 0.9999",
        ),
        # Not as minimum and maximum: the API server prints such bounds without decimals, and would
        # say of 80 that it "should be less than or equal to 0".
        Rule(
            field="utilizationCeiling",
            cel="self.utilizationCeiling >= 0.01 && self.utilizationCeiling <= 0.95",
            holds=lambda slo: 0.01 <= slo.utilization_ceiling <= 0.95,
            message="slo.utilizationCeiling must be from 0.01 to 0.95",
        ),
    )


class Rate(Value):
    """Maximum change within a period; the larger of replicas and percent applies."""

    period: Annotated[Duration, Within("1s", "30m")]
    """Period over which changes are summed."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum change per period, in replicas."""
    percent: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum change per period, in percent of the replicas at its start."""

    rules = (
        Rule(
            cel="has(self.replicas) || has(self.percent)",
            holds=lambda rate: rate.replicas is not None or rate.percent is not None,
            message="rate must set replicas, percent or both",
        ),
    )

    def to_limit(self) -> RateLimit:
        """Return the limit in the form that the decision uses."""
        return RateLimit(
            period_s=self.period.seconds, replicas=self.replicas or 0, percent=self.percent or 0
        )


class ScaleUp(Value):
    """Limits on adding replicas."""

    stabilization_window: StabilizationWindow = Duration.parse("0s")
    """How long more replicas must be recommended before they are added."""
    rate: Rate | None = None
    """Maximum rate of adding replicas. Default: unlimited."""


class ScaleDown(Value):
    """Limits on removing replicas."""

    stabilization_window: StabilizationWindow = Duration.parse("90s")
    """How long all rules must recommend fewer replicas before any is removed. Never shorter than
    the measured cold start. Before one has been measured: three times as long, and never shorter
    than the longest start in progress."""
    rate: Rate | None = None
    """Maximum rate of removing replicas. Default: unlimited."""


class ScaleToZero(Value):
    """When the last replica is removed. The next request starts one, and is held meanwhile."""

    idle_timeout: Annotated[Duration, Within("10s", "24h")] = Duration.parse("10m")
    """Time without requests after which the last replica is removed. Requires minReplicas 0."""


def _bounds(scaling: Scaling) -> str:
    return f"minReplicas {scaling.min_replicas}, maxReplicas {scaling.max_replicas}"


def _floor_above_maximum(scaling: Scaling) -> str:
    highest = max(scaling.schedules, key=lambda one: one.min_replicas)
    return (
        f"minReplicas {highest.min_replicas} in {highest.name}, maxReplicas {scaling.max_replicas}"
    )


class Scaling(Value):
    """Limits and mode of scaling."""

    mode: Literal["Auto", "Recommend", "External"] = "Auto"
    """Auto: the operator sets the number of replicas. Recommend: it writes its decision to the
    status only, after setting the replicas at creation. External: it follows spec.replicas, which
    kubectl scale, an HPA or KEDA may set."""
    min_replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Minimum number of replicas. 0 requires routing.mode Gateway."""
    scale_to_zero: ScaleToZero = ScaleToZero()
    """When the last replica is removed. Requires minReplicas 0."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 20
    """Maximum number of replicas, even if the SLO needs more."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """When accelerators run out, the service with the highest priority gets them first. Services
    with a lower priority yield replicas, but never below their minReplicas."""
    scale_up: ScaleUp = ScaleUp()
    """Limits on adding replicas."""
    scale_down: ScaleDown = ScaleDown()
    """Limits on removing replicas."""
    replace_slow_replicas: bool = True
    """Whether a ready replica that takes at least twice as long as the others, or answers nothing
    while they answer, is evicted and so replaced: one at a time, at most a tenth of the replicas
    (at least one) within 10 minutes. PodDisruptionBudgets are respected. Requires mode Auto."""
    rebalance_connections: bool = True
    """Whether the most loaded replicas are evicted where kept connections stay with them and their
    requests are late, so that the clients connect to other ready replicas: only if these would
    carry all arrivals, at most half of the replicas (at least four) within 10 minutes.
    PodDisruptionBudgets are respected. Requires mode Auto and routing.mode Service."""
    schedules: Annotated[
        tuple[Schedule, ...], Field(max_length=16, strict=False), MapBy("name")
    ] = ()
    """Higher minimums at certain times."""

    rules = (
        Rule(
            field="schedules",
            cel="self.schedules.all(one, one.minReplicas <= self.maxReplicas)",
            holds=lambda scaling: all(
                one.min_replicas <= scaling.max_replicas for one in scaling.schedules
            ),
            message="minReplicas of each entry in scaling.schedules must be at most "
            "scaling.maxReplicas",
            got=_floor_above_maximum,
        ),
        Rule(
            field="minReplicas",
            cel="self.minReplicas <= self.maxReplicas",
            holds=lambda scaling: scaling.min_replicas <= scaling.max_replicas,
            message="scaling.minReplicas must be at most scaling.maxReplicas",
            got=_bounds,
        ),
    )


class Drain(Value):
    """Termination of replicas."""

    grace_period: Annotated[Duration, Within("1s", "1h")] = Duration.parse("60s")
    """Time that a terminating replica has to finish the requests it accepted."""


class Spec(Value):
    """Desired service level, model server and scaling limits."""

    runtime: Runtime = Runtime()
    """Model server that runs in each replica; with targetRef, how its metrics are read."""
    target_ref: TargetRef | None = None
    """Existing workload to scale instead of a Deployment created by the operator. Only its
    replicas are changed; with routing.mode Gateway clients get an additional Service."""
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
    """How requests reach the replicas."""
    telemetry: Telemetry = Telemetry()
    """Where the operator reads the metrics of the pods."""
    drain: Drain = Drain()
    """Termination of replicas."""

    rules = (
        Rule(
            field="targetRef",
            cel="has(self.targetRef) != has(self.runtime.image)",
            holds=lambda spec: (spec.target_ref is None) != (spec.runtime.image is None),
            message="spec must set exactly one of runtime.image (the operator creates the pods) "
            "and targetRef (it scales an existing workload)",
            got=lambda spec: "neither" if spec.target_ref is None else "both",
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
            message="runtime.args, env, resources, podTemplate and model.uri must not be set "
            "with targetRef, whose pods the operator does not create",
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
            message="replicas must be set where scaling.mode is External, and only there; to "
            "keep the current number, set it to status.replicas",
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
    )

    @property
    def class_promises(self) -> tuple[ClassPromise, ...]:
        """The promises of slo and of each class that differs; empty where none does."""
        return class_promises(self.slo.token_targets, self.routing.classes)
