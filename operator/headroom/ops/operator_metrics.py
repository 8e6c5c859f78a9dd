"""The operator's Prometheus metrics.

A value that is unknown has no series. The series of a deleted service are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from headroom.api import InferenceService
from headroom.ops.service_gauges import Family, ServiceGauges
from headroom.scaling import Decision, DemandKnown, Obstacle
from headroom.scaling.generation.class_judgement import ClassState
from headroom.scaling.generation.classes import SERVICE
from headroom.scaling.generation.promises import worst_ratio
from headroom.scaling.values.token_decision import GenerationDecision, GenerationMeasurement
from headroom.scaling.values.tokens import Binding

_TICK_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)


class _LeaseTransitions(Collector):
    """A counter that the Lease object keeps, not this process."""

    def __init__(self) -> None:
        self.number = 0

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Give the number that the Lease states."""
        yield CounterMetricFamily(
            "headroom_operator_lease_transitions",
            "Number of times the lease changed its holder, as stated by the Lease.",
            value=self.number,
        )


class OperatorMetrics:
    """Counts the controller's work and shows the last figures of each service."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._decisions = Counter(
            "headroom_operator_decisions",
            "Scaling decisions by reason.",
            ["reason"],
            registry=registry,
        )
        self._failures = Counter(
            "headroom_operator_decision_failures",
            "Exceptions inside the decision by class; each costs a sample or a tick.",
            ["exception"],
            registry=registry,
        )
        self._ticks = Counter(
            "headroom_operator_ticks",
            "Ticks (evaluations of one service) by outcome.",
            ["outcome"],
            registry=registry,
        )
        self._tick_seconds = Histogram(
            "headroom_operator_tick_duration_seconds",
            "Duration of a tick.",
            buckets=_TICK_BOUNDS_S,
            registry=registry,
        )
        self._lag_seconds = Histogram(
            "headroom_operator_tick_lag_seconds",
            "Delay of a tick behind its schedule.",
            buckets=_TICK_BOUNDS_S,
            registry=registry,
        )
        self._calls = Counter(
            "headroom_operator_api_requests",
            "Requests to the Kubernetes API by verb and status code.",
            ["verb", "code"],
            registry=registry,
        )
        self._call_seconds = Histogram(
            "headroom_operator_api_request_duration_seconds",
            "Duration of a request to the Kubernetes API.",
            ["verb"],
            buckets=_TICK_BOUNDS_S,
            registry=registry,
        )
        self._loop_lag = Gauge(
            "headroom_operator_loop_lag_seconds",
            "Delay of the event loop behind its last timer.",
            registry=registry,
        )
        self._leader = Gauge(
            "headroom_operator_leader",
            "1 while this process holds the lease and makes decisions, else 0.",
            registry=registry,
        )
        self._certificates = Gauge(
            "headroom_operator_certificate_expires_timestamp_seconds",
            "When the certificate in a Secret expires, by the Secret; of gateways and activators "
            "where this process leads and issues them.",
            ["secret"],
            registry=registry,
        )
        self._transitions = _LeaseTransitions()
        registry.register(self._transitions)
        self._of_services = ServiceGauges(_OF_SERVICES)

    def decided(self, service: InferenceService, decision: Decision) -> None:
        """Count a decision, and show its inputs and its result."""
        self._decisions.labels(decision.reason.value).inc()
        owner = (service.namespace, service.name)
        for state, number in _replicas(decision).items():
            self._of_services.show(owner, _REPLICAS, number, state)
        for name, value in _measurements(service, decision).items():
            self._of_services.show(owner, name, value)
        for known in DemandKnown:
            is_known = float(decision.demand.known is known)
            self._of_services.show(owner, _DEMAND_KNOWN, is_known, known.value)
        for obstacle in Obstacle:
            self._of_services.show(owner, _OBSTACLE, _blocks(decision, obstacle), obstacle.value)

    def gateway_rates(self, service: InferenceService, rates: Mapping[str, float | None]) -> None:
        """Show the rates counted at the gateways; no series without a gateway."""
        owner = (service.namespace, service.name)
        for counted, name in _GATEWAY_RATES.items():
            self._of_services.show(owner, name, rates.get(counted))

    def tokens_measured(
        self, service: InferenceService, measured: Mapping[str, float | None], room: float
    ) -> None:
        """Show the measured latency of each token SLO; no series without one."""
        owner, slo = (service.namespace, service.name), service.spec.slo
        objectives = {
            "timeToFirstToken": slo.time_to_first_token,
            "timePerOutputToken": slo.time_per_output_token,
        }
        for name, objective in objectives.items():
            target_s = None if objective is None else objective.target.seconds
            self._of_services.show(owner, _OBJECTIVE_TARGET, target_s, name)
            self._of_services.show(owner, _OBJECTIVE_LATENCY, measured.get(name), name)
        self._of_services.show(owner, _CAPACITY_FACTOR, room if measured else None)

    def generated(
        self,
        service: InferenceService,
        decision: GenerationDecision | None,
        measured: GenerationMeasurement | None,
    ) -> None:
        """Show tokens per second, KV memory, capacity and what binds; nothing without tokens."""
        owner = (service.namespace, service.name)
        found = measured or GenerationMeasurement()
        self._of_services.show(owner, _TOKENS, found.generated_tokens_per_s, "generated")
        self._of_services.show(owner, _TOKENS, found.prompt_tokens_per_s, "computed")
        self._of_services.show(owner, _KV_USED, found.kv_used_share)
        capacity = None if decision is None else decision.capacity_rps
        self._of_services.show(owner, _GENERATING_CAPACITY, capacity)
        binding = None if decision is None else decision.binding
        for one in Binding:
            shown = None if binding is None else float(one is binding)
            self._of_services.show(owner, _BINDING, shown, one.value)

    def classes_measured(self, service: InferenceService, classes: ClassState) -> None:
        """Show what each class with promises of its own attained; the others have no series."""
        owner = (service.namespace, service.name)
        for name in (_CLASS_ATTAINMENT, _CLASS_USED):
            self._of_services.clear(owner, name)
        for one in classes.judgement.classes if classes.judgement is not None else ():
            if one.promise.name != SERVICE:
                used = worst_ratio(one.window)
                self._of_services.show(owner, _CLASS_ATTAINMENT, one.attainment, one.promise.name)
                self._of_services.show(owner, _CLASS_USED, used, one.promise.name)

    def judged(self, service: InferenceService, *, kept: bool) -> None:
        """Count a one-minute SLO window with traffic."""
        owner = (service.namespace, service.name)
        for outcome in ("true", "false"):  # both from the first minute on, so that a rate exists
            counts = outcome == str(kept).lower()
            self._of_services.count(owner, _SLO_WINDOWS, float(counts), outcome)

    def decision_failed(self, service: InferenceService, exception: str) -> None:
        """Count an exception inside the decision."""
        self._failures.labels(exception).inc()

    def troubled(self, namespace: str, name: str, reasons: Collection[str]) -> None:
        """Show the reasons of conditions that are not as they should be, and no others."""
        owner = (namespace, name)
        self._of_services.clear(owner, _TROUBLE)
        for reason in reasons:
            self._of_services.show(owner, _TROUBLE, 1.0, reason)

    def held(self, namespace: str, name: str) -> None:
        """Remove what earlier decisions showed: none is made for this service; counters stay."""
        self._of_services.clear_gauges((namespace, name))

    def ticked(self, seconds: float, lag_s: float, outcome: str) -> None:
        """Count a tick."""
        self._ticks.labels(outcome).inc()
        self._tick_seconds.observe(seconds)
        self._lag_seconds.observe(lag_s)

    def forgotten(self, namespace: str, name: str) -> None:
        """Drop every series of a service."""
        self._of_services.forget((namespace, name))

    def called(self, verb: str, code: str, seconds: float) -> None:
        """Count a request to the Kubernetes API."""
        self._calls.labels(verb, code).inc()
        self._call_seconds.labels(verb).observe(seconds)

    def lagged(self, seconds: float) -> None:
        """Show the delay of the event loop."""
        self._loop_lag.set(seconds)

    def led(self, leading: bool, transitions: int) -> None:
        """Show whether this process leads, and the number of lease transitions."""
        self._leader.set(1.0 if leading else 0.0)
        self._transitions.number = transitions

    def certificates(self, until_s: Mapping[str, float]) -> None:
        """Show when the certificates that this process knows expire, and no others."""
        self._certificates.clear()
        for secret, expires_s in until_s.items():
            self._certificates.labels(secret).set(expires_s)

    def page(self) -> bytes:
        """Render everything as Prometheus text."""
        return generate_latest(self._registry) + self._of_services.page()


_MEASURED = {
    "headroom_service_arrivals_per_second": "Requests that arrive per second.",
    "headroom_service_demand_per_second": "Requests per second that the rules use; a bound of "
    "what clients want to send, unless demand is known to be exact.",
    "headroom_service_demand_at_most_per_second": "Upper bound of hidden demand.",
    "headroom_service_margin_ratio": "Learned factor on the replicas that carry the arrivals.",
    "headroom_service_late_requests_ratio": "Share of the last hour's requests that were late.",
    "headroom_service_requests_waiting": "Requests queued, without those in a batch.",
    "headroom_service_latency_seconds": "Measured percentile; +Inf where too many requests missed.",
    "headroom_service_latency_target_seconds": "Target of the percentile.",
    "headroom_service_utilization_ratio": "Arrival rate divided by full-batch throughput.",
    "headroom_service_slo_objective_ratio": "Share of windows that must meet the target.",
    "headroom_service_utilization_ceiling_ratio": "Maximum utilization after any decision.",
    "headroom_service_last_decision_timestamp_seconds": "Unix time of the last scaling decision.",
}

_SLO_WINDOWS = "headroom_service_slo_windows_total"
_REPLICAS = "headroom_service_replicas"
_DEMAND_KNOWN = "headroom_service_demand_known"
_TROUBLE = "headroom_service_trouble"
_OBSTACLE = "headroom_service_obstacle"
_GATEWAY_RATES = {
    "arrived": "headroom_service_gateway_arrivals_per_second",
    "missed": "headroom_service_gateway_misses_per_second",
}
_OBJECTIVE_LATENCY = "headroom_service_token_latency_seconds"
_OBJECTIVE_TARGET = "headroom_service_token_latency_target_seconds"
_TOKENS = "headroom_service_tokens_per_second"
_KV_USED = "headroom_service_kv_used_ratio"
_GENERATING_CAPACITY = "headroom_service_generating_capacity_per_second"
_BINDING = "headroom_service_generation_binding"
_CLASS_ATTAINMENT = "headroom_service_class_attainment_ratio"
_CLASS_USED = "headroom_service_class_target_used_ratio"
_CAPACITY_FACTOR = "headroom_service_token_slo_capacity_factor"
_OF_SERVICES = {
    _SLO_WINDOWS: Family(
        text="One-minute windows with traffic, by whether they met the latency target.",
        label="met",
        kind="counter",
    ),
    _REPLICAS: Family(text="Number of replicas by state.", label="state"),
    _DEMAND_KNOWN: Family(
        text="1 for how the arrival rate relates to the demand (Exact, AtLeast, IncludesRetries).",
        label="known",
    ),
    _OBSTACLE: Family(
        text="1 for what keeps latency above its target and more replicas cannot change.",
        label="obstacle",
    ),
    _TROUBLE: Family(
        text="1 for each reason for which a condition is not as it should be.", label="reason"
    ),
    **{name: Family(text=text) for name, text in _MEASURED.items()},
    _GATEWAY_RATES["arrived"]: Family(text="Requests that arrive at the gateways per second."),
    _GATEWAY_RATES["missed"]: Family(
        text="Requests that the gateways reject or that fail, expire or are given up per second."
    ),
    _OBJECTIVE_LATENCY: Family(text="Latency at the percentile of a token SLO.", label="slo"),
    _OBJECTIVE_TARGET: Family(text="Target of a token SLO.", label="slo"),
    _TOKENS: Family(
        text="Tokens generated, and prompt tokens computed, by all replicas in the last minute.",
        label="kind",
    ),
    _KV_USED: Family(text="Share of the KV memory in use, of the replica with the largest."),
    _GENERATING_CAPACITY: Family(
        text="Requests per second that a generating replica carries within all bounds."
    ),
    _BINDING: Family(text="1 for what bounds the rate of a generating replica.", label="bound"),
    _CLASS_ATTAINMENT: Family(
        text="Share of the last minute's requests of a class that kept all its promises.",
        label="class",
    ),
    _CLASS_USED: Family(
        text="Largest measured percentile of a class over its target.", label="class"
    ),
    _CAPACITY_FACTOR: Family(
        text="Factor by which capacity is increased to meet token SLOs; 1 without need."
    ),
}


def _replicas(decision: Decision) -> dict[str, int]:
    counts = decision.counts
    return {
        "desired": decision.replicas,
        "current": decision.current,
        "ready": counts.ready,
        "warming": counts.warming,
        "late": counts.late,
        "unschedulable": counts.unschedulable,
        "broken": counts.broken,
        "terminating": counts.terminating,
    }


def _blocks(decision: Decision, obstacle: Obstacle) -> float:
    below = obstacle is Obstacle.TARGET_BELOW_IDLE and not decision.feasible
    return float(decision.obstacle is obstacle or below)


def _measurements(service: InferenceService, decision: Decision) -> dict[str, float | None]:
    signals, demand, slo = decision.signals, decision.demand, service.spec.slo
    values = (
        signals.arrival_rps.value,
        demand.rate_rps,
        demand.at_most_rps,
        decision.margin,
        decision.late_share,
        signals.waiting.value,
        signals.latency_s.value,
        None if slo.latency is None else slo.latency.target.seconds,
        decision.utilization,
        slo.objective,
        slo.utilization_ceiling,
        decision.time_s,
    )
    return dict(zip(_MEASURED, values, strict=True))
