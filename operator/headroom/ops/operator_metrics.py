"""The operator's Prometheus metrics.

A value that is unknown has no series. The series of a deleted service are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from headroom.api import InferenceService
from headroom.ops import service_figures as figures
from headroom.ops.service_families import (
    CLASS_ATTAINMENT,
    CLASS_USED,
    FAMILIES,
    OVERDUE,
    UNHEALTHY_CONDITION,
)
from headroom.ops.service_figures import Figure
from headroom.ops.service_gauges import ServiceGauges
from headroom.scaling import Decision
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.values.token_decision import GenerationDecision, GenerationMeasurement

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
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, buckets=_TICK_BOUNDS_S, registry=registry)
        self._decisions = counter(
            "headroom_operator_decisions", "Scaling decisions by reason.", ["reason"]
        )
        self._failures = counter(
            "headroom_operator_decision_failures",
            "Exceptions inside the decision by class; each costs a sample or a tick.",
            ["exception"],
        )
        self._ticks = counter(
            "headroom_operator_ticks", "Ticks (evaluations of one service) by outcome.", ["outcome"]
        )
        self._tick_seconds = histogram(
            "headroom_operator_tick_duration_seconds", "Duration of a tick."
        )
        self._lag_seconds = histogram(
            "headroom_operator_tick_lag_seconds", "Delay of a tick behind its schedule."
        )
        self._calls = counter(
            "headroom_operator_api_requests",
            "Requests to the Kubernetes API by verb and status code.",
            ["verb", "code"],
        )
        self._call_seconds = histogram(
            "headroom_operator_api_request_duration_seconds",
            "Duration of a request to the Kubernetes API.",
            ["verb"],
        )
        self._loop_lag = gauge(
            "headroom_operator_loop_lag_seconds", "Delay of the event loop behind its last timer."
        )
        self._leader = gauge(
            "headroom_operator_leader",
            "1 while this process holds the lease and makes decisions, else 0.",
        )
        self._unlisted = gauge(
            "headroom_operator_namespace_unlisted",
            "1 for each namespace that cannot be read while others can.",
            ["namespace"],
        )
        self._unread = gauge(
            "headroom_operator_service_unread",
            "1 for each InferenceService that is too large to be read: changes of it do not count.",
            ["namespace", "inferenceservice"],
        )
        self._certificates = gauge(
            "headroom_operator_certificate_expires_timestamp_seconds",
            "When the certificate in a Secret expires, by the Secret; of gateways and activators "
            "where this process leads and issues them.",
            ["secret"],
        )
        self._transitions = _LeaseTransitions()
        registry.register(self._transitions)
        self._services = ServiceGauges(FAMILIES)

    def decided(self, service: InferenceService, decision: Decision) -> None:
        """Count a decision, and show its inputs and its result."""
        self._decisions.labels(decision.reason.value).inc()
        self._show(service, figures.of_decision(service, decision))

    def overdue(self, service: InferenceService, pods: int) -> None:
        """Show the pods that should have ended."""
        self._services.show((service.namespace, service.name), OVERDUE, pods)

    def gateway_rates(self, service: InferenceService, rates: Mapping[str, float | None]) -> None:
        """Show the rates counted at the gateways."""
        self._show(service, figures.of_gateways(rates))

    def tokens_measured(
        self, service: InferenceService, measured: Mapping[str, float | None], room: float
    ) -> None:
        """Show the measured latency of each token SLO, and the capacity factor."""
        self._show(service, figures.of_token_slos(service, measured, room))

    def generated(
        self,
        service: InferenceService,
        decision: GenerationDecision | None,
        measured: GenerationMeasurement | None,
    ) -> None:
        """Show tokens per second, KV memory, capacity and what binds."""
        self._show(service, figures.of_generation(decision, measured))

    def classes_measured(self, service: InferenceService, classes: ClassState) -> None:
        """Show the attainment of each class with promises of its own, and of no others."""
        for name in (CLASS_ATTAINMENT, CLASS_USED):
            self._services.clear((service.namespace, service.name), name)
        self._show(service, figures.of_classes(classes))

    def judged(self, service: InferenceService, *, kept: bool) -> None:
        """Count a one-minute SLO window with traffic."""
        for name, more, outcome in figures.of_minute(kept=kept):
            self._services.count((service.namespace, service.name), name, more or 0.0, outcome)

    def _show(self, service: InferenceService, shown: Iterable[Figure]) -> None:
        for name, value, label in shown:
            self._services.show((service.namespace, service.name), name, value, label)

    def decision_failed(self, service: InferenceService, exception: str) -> None:
        """Count an exception inside the decision."""
        self._failures.labels(exception).inc()

    def show_unhealthy(self, namespace: str, name: str, reasons: Collection[str]) -> None:
        """Show the reasons of conditions that are not as they should be, and no others."""
        owner = (namespace, name)
        self._services.clear(owner, UNHEALTHY_CONDITION)
        for reason in reasons:
            self._services.show(owner, UNHEALTHY_CONDITION, 1.0, reason)

    def held(self, namespace: str, name: str) -> None:
        """Remove what earlier decisions showed: none is made for this service; counters stay."""
        self._services.clear_gauges((namespace, name))

    def ticked(self, seconds: float, lag_s: float, outcome: str) -> None:
        """Count a tick."""
        self._ticks.labels(outcome).inc()
        self._tick_seconds.observe(seconds)
        self._lag_seconds.observe(lag_s)

    def forgotten(self, namespace: str, name: str) -> None:
        """Drop every series of a service."""
        self._services.forget((namespace, name))

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

    def unlisted(self, namespaces: Collection[str]) -> None:
        """Show the namespaces that cannot be read while others can, and no others."""
        self._unlisted.clear()
        for namespace in namespaces:
            self._unlisted.labels(namespace).set(1.0)

    def unread(self, services: Collection[tuple[str, str]]) -> None:
        """Show the services that are too large to be read, and no others."""
        self._unread.clear()
        for namespace, name in services:
            self._unread.labels(namespace, name).set(1.0)

    def page(self) -> bytes:
        """Render everything as Prometheus text."""
        return generate_latest(self._registry) + self._services.page()
