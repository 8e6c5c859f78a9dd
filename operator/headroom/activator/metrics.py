"""What an activator shows of itself, as Prometheus text."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_HELD_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Metrics:
    """Counts what is held and what becomes of it."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._ended = Counter(
            "headroom_activator_requests",
            "Requests that were held, by what became of them.",
            ("service", "outcome"),
            registry=self._registry,
        )
        self._held_s = Histogram(
            "headroom_activator_held_seconds",
            "Time that a request was held before a replica began to answer it.",
            buckets=_HELD_S,
            registry=self._registry,
        )
        self._held = Gauge(
            "headroom_activator_held_requests",
            "Requests that wait or are being answered now.",
            registry=self._registry,
        )
        self._bytes = Gauge(
            "headroom_activator_held_bytes", "What they hold.", registry=self._registry
        )
        self._wakes = Counter(
            "headroom_activator_wakes",
            "Calls that told the operator who is held, by how they ended.",
            ("outcome",),
            registry=self._registry,
        )

    def passed_on(self, key: str, held_s: float) -> None:
        """Count a request that a replica answered."""
        self._held_s.observe(held_s)
        self.ended(key, "Answered")

    def ended(self, key: str, outcome: str) -> None:
        """Count a request that ended."""
        self._ended.labels(key, outcome).inc()

    def woke(self, outcome: str) -> None:
        """Count a call."""
        self._wakes.labels(outcome).inc()

    def page(self, requests: int, body_bytes: int) -> bytes:
        """Render everything."""
        self._held.set(requests)
        self._bytes.set(body_bytes)
        return generate_latest(self._registry)
