"""Account of the operator's work between two readings of its own metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LINE = re.compile(r"(?m)^(headroom_operator_\w+)(?:\{([^}]*)\})? (\S+)$")
_DECIDED = re.compile(r"(?m)^headroom_service_last_decision_timestamp_seconds\{([^}]*)\} (\S+)$")
_READY = re.compile(r'(?m)^headroom_service_replicas\{([^}]*),state="ready"\} (\S+)$')
Samples = Mapping[tuple[str, str], float]
"""Values by name and labels, unchanged."""
_LAG = "headroom_operator_tick_lag_seconds_bucket"


def read(page: str) -> Samples:
    """Read what the page says of the operator itself."""
    return {(name, labels): float(value) for name, labels, value in _LINE.findall(page)}


def decided_s(page: str) -> Mapping[str, float]:
    """Return when each service was last decided, seconds since the epoch, by its labels."""
    return {labels: float(moment) for labels, moment in _DECIDED.findall(page)}


def ready(page: str) -> Mapping[str, float]:
    """Return the warm replicas of each service, by its labels."""
    return {labels: float(number) for labels, number in _READY.findall(page)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Work of the operator between two pages, and its cost."""

    services: int
    seconds: float
    cpu_s: float
    rss_mb: float
    before: Samples
    after: Samples

    @property
    def ticks(self) -> float:
        """Evaluations, however they ended."""
        return self._grown("headroom_operator_ticks_total")

    @property
    def failed(self) -> float:
        """Evaluations that broke off."""
        return self.ticks - self._grown("headroom_operator_ticks_total", 'outcome="ok"')

    @property
    def calls(self) -> Mapping[str, float]:
        """Requests to the API by verb."""
        grown: dict[str, float] = {}
        for (name, labels), value in self.after.items():
            if name == "headroom_operator_api_requests_total":
                verb = dict(re.findall(r'(\w+)="([^"]*)"', labels))["verb"]
                more = value - self.before.get((name, labels), 0.0)
                grown[verb] = grown.get(verb, 0.0) + more
        return {verb: number for verb, number in grown.items() if number}

    def late_s(self, share: float) -> float:
        """Return the smallest bound that this share of the ticks began within."""
        bounds = sorted(
            (float(labels[4:-1]), value - self.before.get((name, labels), 0.0))
            for (name, labels), value in self.after.items()
            if name == _LAG
        )
        wanted = share * (bounds[-1][1] if bounds else 0.0)
        return next((bound for bound, count in bounds if count >= wanted), 0.0)

    def _grown(self, name: str, labels: str | None = None) -> float:
        return sum(
            value - self.before.get(key, 0.0)
            for key, value in self.after.items()
            if key[0] == name and labels in (None, key[1])
        )
