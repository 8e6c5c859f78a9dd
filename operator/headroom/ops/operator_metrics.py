"""The operator's own metrics.

What is absent has no series; a service that is gone takes its series along.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headroom.api import InferenceService
from headroom.ops.service_gauges import Family, ServiceFigures
from headroom.scaling import Decision

_TICK_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)


class Instruments:
    """Counts what the controller does and shows what it last saw."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._decisions = Counter(
            "headroom_operator_decisions", "Decisions by what binds.", ["reason"], registry=registry
        )
        self._ticks = Counter(
            "headroom_operator_ticks",
            "Evaluations by how they ended.",
            ["outcome"],
            registry=registry,
        )
        self._tick_seconds = Histogram(
            "headroom_operator_tick_duration_seconds",
            "How long an evaluation takes.",
            buckets=_TICK_BOUNDS_S,
            registry=registry,
        )
        self._lag_seconds = Histogram(
            "headroom_operator_tick_lag_seconds",
            "How late an evaluation begins.",
            buckets=_TICK_BOUNDS_S,
            registry=registry,
        )
        self._calls = Counter(
            "headroom_operator_api_requests",
            "Requests to the Kubernetes API.",
            ["verb", "code"],
            registry=registry,
        )
        self._call_seconds = Histogram(
            "headroom_operator_api_request_duration_seconds",
            "How long a request to the Kubernetes API takes.",
            ["verb"],
            buckets=_TICK_BOUNDS_S,
            registry=registry,
        )
        self._loop_lag = Gauge(
            "headroom_operator_loop_lag_seconds",
            "How late the event loop woke up last.",
            registry=registry,
        )
        self._leader = Gauge(
            "headroom_operator_leader",
            "1 while this process holds the lease and decides, 0 while it follows.",
            registry=registry,
        )
        self._transitions = Gauge(
            "headroom_operator_lease_transitions",
            "How often the holder of the lease has changed, as the Lease says.",
            registry=registry,
        )
        self._of_services = ServiceFigures(_OF_SERVICES)

    def decided(self, service: InferenceService, decision: Decision) -> None:
        """Count a decision, and show what it saw."""
        self._decisions.labels(decision.reason.value).inc()
        owner = (service.namespace, service.name)
        for state, number in _replicas(decision).items():
            self._of_services.show(owner, _REPLICAS, number, state)
        for name, value in _measurements(service, decision).items():
            self._of_services.show(owner, name, value)

    def seen_by_clients(self, service: InferenceService, rates: Mapping[str, float | None]) -> None:
        """Show what gateways count; nothing where requests do not come through them."""
        owner = (service.namespace, service.name)
        for outcome in ("arrived", "missed"):
            self._of_services.show(owner, _GATEWAY_RATES, rates.get(outcome), outcome)

    def tokens_measured(
        self, service: InferenceService, measured: Mapping[str, float | None], room: float
    ) -> None:
        """Show what is measured of each promise on tokens; nothing of those that are not made."""
        owner, slo = (service.namespace, service.name), service.spec.slo
        promises = {
            "timeToFirstToken": slo.time_to_first_token,
            "timePerOutputToken": slo.time_per_output_token,
        }
        for name, promise in promises.items():
            target_s = None if promise is None else promise.target.seconds
            self._of_services.show(owner, _PROMISE_TARGET, target_s, name)
            self._of_services.show(owner, _PROMISE_LATENCY, measured.get(name), name)
        self._of_services.show(owner, _PROMISE_ROOM, room if measured else None)

    def judged(self, service: InferenceService, *, kept: bool) -> None:
        """Count a minute that counts towards the objective."""
        owner = (service.namespace, service.name)
        for outcome in ("true", "false"):  # both from the first minute on, so that a rate exists
            counts = outcome == str(kept).lower()
            self._of_services.count(owner, _MINUTES, float(counts), outcome)

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
        """Show by how much the event loop was late."""
        self._loop_lag.set(seconds)

    def led(self, leading: bool, transitions: int) -> None:
        """Show whether this process leads, and how often the holder has changed."""
        self._leader.set(1.0 if leading else 0.0)
        self._transitions.set(transitions)

    def page(self) -> bytes:
        """Render everything as Prometheus text."""
        return generate_latest(self._registry) + self._of_services.page()


_MEASURED = {
    "headroom_service_arrivals_per_second": "Requests at the door.",
    "headroom_service_requests_waiting": "Requests queued, those in a batch not counted.",
    "headroom_service_latency_seconds": "The promised percentile, misses as +Inf.",
    "headroom_service_latency_target_seconds": "What the percentile must stay below.",
    "headroom_service_utilization_ratio": "Arrivals over full-batch throughput.",
    "headroom_service_objective_ratio": "Share of minutes in which the percentile is to hold.",
    "headroom_service_utilization_ceiling_ratio": "What utilization must stay below.",
    "headroom_service_last_decision_timestamp_seconds": "When it was last decided.",
}

_MINUTES = "headroom_service_minutes_total"
_REPLICAS = "headroom_service_replicas"
_GATEWAY_RATES = "headroom_service_gateway_requests_per_second"
_PROMISE_LATENCY = "headroom_service_token_latency_seconds"
_PROMISE_TARGET = "headroom_service_token_latency_target_seconds"
_PROMISE_ROOM = "headroom_service_token_room_ratio"
_OF_SERVICES = {
    _MINUTES: Family(
        text="Minutes with traffic, by whether the promised percentile held.",
        label="kept",
        kind="counter",
    ),
    _REPLICAS: Family(text="Replicas by what they are worth.", label="state"),
    **{name: Family(text=text) for name, text in _MEASURED.items()},
    _GATEWAY_RATES: Family(
        text="Requests as clients see them, counted at the gateways.", label="outcome"
    ),
    _PROMISE_LATENCY: Family(
        text="The promised percentile of a promise on tokens.", label="promise"
    ),
    _PROMISE_TARGET: Family(text="What that percentile must stay below.", label="promise"),
    _PROMISE_ROOM: Family(
        text="How many times the replicas are left free for the promises on tokens."
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


def _measurements(service: InferenceService, decision: Decision) -> dict[str, float | None]:
    signals, slo = decision.signals, service.spec.slo
    values = (
        signals.arrival_rps.value,
        signals.waiting.value,
        signals.latency_s.value,
        slo.latency.target.seconds,
        decision.utilization,
        slo.objective,
        slo.utilization_ceiling,
        decision.time_s,
    )
    return dict(zip(_MEASURED, values, strict=True))
