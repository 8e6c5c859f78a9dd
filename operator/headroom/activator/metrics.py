"""The activator's Prometheus metrics."""

from __future__ import annotations

from collections.abc import Container

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_HELD_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Metrics:
    """Counts held requests and their outcomes."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._ended = Counter(
            "headroom_activator_requests",
            "Requests that reached the activator, by outcome.",
            ("service", "outcome"),
            registry=self._registry,
        )
        self._counted: set[tuple[str, str]] = set()
        self._held_s = Histogram(
            "headroom_activator_held_seconds",
            "Time from the arrival of a request to the first byte of a replica's answer.",
            buckets=_HELD_S,
            registry=self._registry,
        )
        self._held = Gauge(
            "headroom_activator_held_requests",
            "Requests that wait or are being answered now.",
            registry=self._registry,
        )
        self._bytes = Gauge(
            "headroom_activator_held_bytes",
            "Bytes of the requests that are held now.",
            registry=self._registry,
        )
        self._activations = Counter(
            "headroom_activator_activations",
            "Reports of held requests to the operator, by HTTP status or error.",
            ("outcome",),
            registry=self._registry,
        )

    def passed_on(self, key: str, held_s: float) -> None:
        """Count a request that a replica answered after `held_s` seconds."""
        self._held_s.observe(held_s)
        self.ended(key, "Answered")

    def ended(self, key: str, outcome: str) -> None:
        """Count a request by outcome."""
        self._ended.labels(key, outcome).inc()
        self._counted.add((key, outcome))

    def keep(self, services: Container[str]) -> None:
        """Drop the counts of other services: those that come and go are not bounded."""
        gone = {one for one in self._counted if one[0] not in services}
        for labels in gone:
            self._ended.remove(*labels)
        self._counted -= gone

    def activated(self, outcome: str) -> None:
        """Count a report to the operator by outcome."""
        self._activations.labels(outcome).inc()

    def page(self, requests: int, body_bytes: int) -> bytes:
        """Render all metrics as text."""
        self._held.set(requests)
        self._bytes.set(body_bytes)
        return generate_latest(self._registry)
