"""PURE. What a server's metrics say, and whether its counters agree with what clients saw."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from serverbench.exchange import OK, Status

Series = tuple[str, str]
"""Name, and the value of its one label besides the model; empty without."""

PREFIX = "headroom_"
BUCKETS = "_bucket"


def series(text: str) -> Mapping[Series, float]:
    """Every sample but the buckets, without the prefix; those that differ in the model are summed.

    Raises:
        ValueError: where it is no exposition text.
    """
    found: dict[Series, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.endswith(BUCKETS):
                continue
            labels = [v for name, v in sample.labels.items() if name not in ("model", "version")]
            key = (sample.name.removeprefix(PREFIX), labels[0] if labels else "")
            found[key] = found.get(key, 0.0) + sample.value
    return found


def total(found: Mapping[Series, float], name: str) -> float:
    """Over all labels; 0 where there is none."""
    return sum(value for (said, _), value in found.items() if said == name)


def grown(after: Mapping[Series, float], before: Mapping[Series, float]) -> Mapping[Series, float]:
    """What was counted in between."""
    return {key: value - before.get(key, 0.0) for key, value in after.items()}


def disagreements(counted: Mapping[Series, float], seen: Mapping[int, int]) -> Mapping[str, float]:
    """How far the counters are from adding up, and from what clients saw; all 0 where they agree.

    `seen` counts ends by HTTP status or `Status`. A request that its client abandoned is cancelled
    for the server, or answered where the answer was on its way.
    """

    def ended(outcome: str) -> float:
        return counted.get(("requests_total", outcome), 0.0)

    in_flight = total(counted, "requests_waiting") + total(counted, "requests_running")
    outcomes = total(counted, "requests_total")
    left = seen.get(Status.ABANDONED, 0)
    answered = ended("ok") + ended("cancelled") - left
    return {
        "received against outcomes": total(counted, "requests_received_total") - outcomes,
        "in flight": in_flight,
        "answered": answered - seen.get(OK, 0),
        "refused": ended("refused") - seen.get(429, 0) - seen.get(503, 0),
        "expired": ended("expired") - seen.get(504, 0),
        "failed": ended("failed") - seen.get(500, 0),
        "invalid": total(counted, "requests_invalid_total")
        - sum(seen.get(status, 0) for status in (400, 404, 408, 413, 415, 422)),
    }
