"""The operator's own metrics.

What is absent has no series; a service that is gone takes its series along.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headroom.api import InferenceService
from headroom.scaling import Decision

_SERVICE = ("namespace", "name")
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
        self._replicas = Gauge(
            "headroom_service_replicas",
            "Replicas by what they are worth.",
            [*_SERVICE, "state"],
            registry=registry,
        )
        self._minutes = Counter(
            "headroom_service_minutes",
            "Minutes with traffic, by whether the promised percentile held.",
            [*_SERVICE, "kept"],
            registry=registry,
        )
        self._gateway_rates = Gauge(
            "headroom_service_gateway_requests_per_second",
            "Requests as clients see them, counted at the gateways.",
            [*_SERVICE, "outcome"],
            registry=registry,
        )
        self._token_latency = Gauge(
            "headroom_service_token_latency_seconds",
            "The promised percentile of a promise on tokens.",
            [*_SERVICE, "promise"],
            registry=registry,
        )
        self._token_target = Gauge(
            "headroom_service_token_latency_target_seconds",
            "What that percentile must stay below.",
            [*_SERVICE, "promise"],
            registry=registry,
        )
        self._token_room = Gauge(
            "headroom_service_token_room_ratio",
            "How many times the replicas are left free for the promises on tokens.",
            _SERVICE,
            registry=registry,
        )
        self._measured = {
            name: Gauge(name, text, _SERVICE, registry=registry) for name, text in _MEASURED.items()
        }
        self._series: dict[tuple[str, ...], dict[tuple[Gauge, tuple[str, ...]], Gauge]] = {}
        """By namespace and name of their service, then by gauge and labels."""

    def decided(self, service: InferenceService, decision: Decision) -> None:
        """Count a decision, and show what it saw."""
        self._decisions.labels(decision.reason.value).inc()
        owner = (service.namespace, service.name)
        for state, number in _replicas(decision).items():
            self._show(self._replicas, (*owner, state), number)
        for name, value in _measurements(service, decision).items():
            self._show(self._measured[name], owner, value)

    def seen_by_clients(self, service: InferenceService, rates: Mapping[str, float | None]) -> None:
        """Show what gateways count; nothing where requests do not come through them."""
        owner = (service.namespace, service.name)
        for outcome in ("arrived", "missed"):
            self._show(self._gateway_rates, (*owner, outcome), rates.get(outcome))

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
            self._show(self._token_target, (*owner, name), target_s)
            self._show(self._token_latency, (*owner, name), measured.get(name))
        self._show(self._token_room, owner, room if measured else None)

    def judged(self, service: InferenceService, *, kept: bool) -> None:
        """Count a minute that counts towards the objective."""
        owner = (service.namespace, service.name)
        for outcome in ("true", "false"):  # both from the first minute on, so that a rate exists
            self._minutes.labels(*owner, outcome).inc(outcome == str(kept).lower())

    def _show(self, gauge: Gauge, labels: tuple[str, ...], value: float | None) -> None:
        """Set a series; looking one up by its labels costs ten times as much as setting it."""
        of_service = self._series.setdefault(labels[:2], {})
        key = (gauge, labels)
        series = of_service.get(key)
        if value is None:
            if series is not None:
                gauge.remove(*labels)
                del of_service[key]
            return
        if series is None:
            series = of_service[key] = gauge.labels(*labels)
        series.set(value)

    def ticked(self, seconds: float, lag_s: float, outcome: str) -> None:
        """Count a tick."""
        self._ticks.labels(outcome).inc()
        self._tick_seconds.observe(seconds)
        self._lag_seconds.observe(lag_s)

    def forgotten(self, namespace: str, name: str) -> None:
        """Drop every series of a service."""
        for outcome in ("true", "false"):
            with suppress(KeyError):  # no minute of it has counted
                self._minutes.remove(namespace, name, outcome)
        for gauge, labels in self._series.pop((namespace, name), ()):
            gauge.remove(*labels)

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
        return generate_latest(self._registry)


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
