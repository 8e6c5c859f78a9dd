"""Checks that a page agrees with itself and with the page before of the same pod. Pure."""

from __future__ import annotations

from headroom.profiles.values import Profile
from headroom.telemetry.bounds.physical_bounds import (
    check_batches,
    check_buckets,
    check_conservation,
    check_durations,
    check_fall,
)
from headroom.telemetry.pages.reading import Reading

_COUNTERS = ("arrived", "answered", "missed", "batches", "batch_items", "batch_seconds")
CONTRADICTED_S = 120.0
"""After this the page before explains nothing any more, and a new one is read as it is."""


def check_places(profile: Profile, now: Reading) -> None:
    """Check that each request is in one place, where the server counts all of them.

    Raises InvalidMetric.
    """
    if profile.conserves and now.latency is not None:
        check_conservation(
            profile,
            arrived=now.arrived or 0.0,
            answered=now.latency.counts[-1],
            missed=now.missed or 0.0,
            in_flight=now.waiting_and_running,
        )


def check_batches_between(profile: Profile, now: Reading, before: Reading) -> None:
    """Check the batches since the last page, where the server counts them and names the largest.

    Raises InvalidMetric.
    """
    if (
        now.batches is None
        or now.batch_items is None
        or now.batch_seconds is None
        or now.max_batch is None
        or before.batches is None
        or before.batch_items is None
        or before.batch_seconds is None
    ):
        return
    check_batches(
        profile,
        batches=now.batches - before.batches,
        items=now.batch_items - before.batch_items,
        seconds=now.batch_seconds - before.batch_seconds,
        largest=max(now.max_batch, before.max_batch or 0.0),
    )


def has_restarted(profile: Profile, now: Reading, older: Reading, elapsed_s: float) -> bool:
    """Return whether counters decreased since the page before: the process has restarted.

    Raises InvalidMetric where the two pages contradict each other.
    """
    counters = [
        (name, earlier, later)
        for name in _COUNTERS
        if (later := getattr(now, name)) is not None
        and (earlier := getattr(older, name)) is not None
    ]
    total_fell = False
    if now.latency is not None and older.latency is not None and profile.latency is not None:
        was, counts = older.latency.counts, now.latency.counts
        total_fell = counts[-1] < was[-1]
        if elapsed_s < CONTRADICTED_S:
            name = f"{profile.latency.name}_bucket"
            check_buckets(name, was, counts)
            if profile.conserves:
                check_durations(
                    name,
                    now.latency.bounds_s,
                    was,
                    counts,
                    elapsed_s=elapsed_s,
                    in_flight=older.waiting_and_running,
                )
    if elapsed_s < CONTRADICTED_S:
        return check_fall(profile, counters) or total_fell
    return total_fell or any(later < earlier for _, earlier, later in counters)
