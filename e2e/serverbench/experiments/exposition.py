"""Reads a server's metrics and checks its counters against what clients saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families

from serverbench.generator.exchange import OK, Status

Series = tuple[str, str]
"""Name, and the value of its one label besides the model; empty without."""

PREFIX = "headroom_"
BUCKETS = "_bucket"
INVALID = (400, 404, 408, 413, 415, 422)


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
    """Return the sum over all labels; 0 without a series."""
    return sum(value for (said, _), value in found.items() if said == name)


def grown(after: Mapping[Series, float], before: Mapping[Series, float]) -> Mapping[Series, float]:
    """Return the growth of each counter."""
    return {key: value - before.get(key, 0.0) for key, value in after.items()}


def disagreements(counted: Mapping[Series, float], seen: Mapping[int, int]) -> Mapping[str, float]:
    """Return how far the counters are from their sum and from clients' counts; 0 if equal.

    `seen` counts ends by HTTP status or `Status`. What a client that left would have been answered
    it does not know: for the server such a request was cancelled, or ended as any other may.
    """
    outcomes = {
        "ok": (OK,),
        "refused": (429, 503),
        "expired": (504,),
        "failed": (500,),
    }
    unseen = {
        outcome: counted.get(("requests_total", outcome), 0.0) - _sum(seen, statuses)
        for outcome, statuses in outcomes.items()
    }
    left = counted.get(("requests_total", "cancelled"), 0.0) + sum(
        max(0.0, number) for number in unseen.values()
    )
    received = total(counted, "requests_received_total")
    return {
        "arrived compared with outcomes": received - total(counted, "requests_total"),
        "in flight": total(counted, "requests_waiting") + total(counted, "requests_running"),
        "invalid": total(counted, "requests_invalid_total") - _sum(seen, INVALID),
        "left": left - seen.get(Status.ABANDONED, 0),
        **{outcome: min(0.0, number) for outcome, number in unseen.items()},
    }


def _sum(seen: Mapping[int, int], statuses: Iterable[int]) -> int:
    return sum(seen.get(status, 0) for status in statuses)
