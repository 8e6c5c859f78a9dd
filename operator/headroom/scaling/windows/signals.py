"""Computes the signals of a service from the windows, each Fresh, Stale or Missing with its age."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median_low

from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import Observation, Pod
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Freshness, Signal, Signals
from headroom.scaling.windows.histogram import attainment, percentile, undecided
from headroom.scaling.windows.sliding_windows import Windows
from headroom.scaling.windows.together import APART_S, arrivals_together
from headroom.scaling.windows.unscraped import (
    arrivals_extrapolated,
    beyond_last_windows,
    has_unobserved_time,
    serving_since_s,
)


def shared_queue(windows: Windows, observation: Observation) -> int | None:
    """Return the queue that all ready replicas share in: their number times the median queue.

    None before the first scrape. Other replicas cannot work off the queue of a stuck or late one,
    and more replicas would not help it.
    """
    queues = [sample.waiting for sample in windows.latest(observation.ready_uids)]
    return len(queues) * median_low(queues) if queues else None


def backlogs(
    windows: Windows, ready: Iterable[str], *, full_rps: float, target_s: float, window_s: float
) -> tuple[int, ...]:
    """Return the queues of replicas that hold more requests than they serve within the target.

    Only of replicas that work at `full_rps` or nearly so: a stuck replica has its queue for another
    reason, and more replicas would not help it.
    """
    most, at_work = full_rps * target_s, _AT_WORK * full_rps * window_s
    behind = [sample for sample in windows.latest(ready) if sample.waiting > most]
    if not behind:
        return ()
    ended, columns = windows.ended(window_s), windows.series.columns
    return tuple(one.waiting for one in behind if ended[columns[one.pod]] >= at_work)


_AT_WORK = 0.7


def old_queues(
    windows: Windows, ready: Iterable[str], *, full_rps: float, least_s: float, window_s: float
) -> tuple[int, ...]:
    """Return the queues of replicas that have `least_s` of work more than the least loaded one.

    Only of replicas that work, as in `backlogs`.
    """
    replicas = tuple(ready)
    lasts = windows.latest(replicas)
    least = min([one.waiting + one.running for one in lasts], default=0)
    target_s = least / full_rps + least_s
    return backlogs(windows, replicas, full_rps=full_rps, target_s=target_s, window_s=window_s)


def read_signals(
    policy: Policy, windows: Windows, observation: Observation, standing_queue: int | None
) -> Signals:
    """Return the signals of all ready pods.

    The age is that of the ready pod with the oldest scrape: a service is known only as well as its
    least known replica. If only some pods are scraped, the signals are stale, not missing. They are
    also stale while the window contains time in which a replica served before its first scrape.

    Rates are missing until one longest burst window has passed: a rate over two seconds is noise,
    and using it would let a restart of the operator change the replicas. Gauges are known at once,
    the standing queue after its window.
    """
    now_s, ready = observation.now_s, observation.ready
    lasts = windows.latest(observation.ready_uids)
    if not lasts:
        return Signals()
    ages_s = [now_s - sample.time_s for sample in lasts]
    age_s = _oldest_s(policy, windows, observation, ages_s)
    watched_s = windows.watched_s(now_s, policy.stable_window_s)
    freshness = _freshness(policy, oldest_s=age_s, youngest_s=min(ages_s))
    if freshness is Freshness.FRESH and has_unobserved_time(
        windows, ready, watched_s, now_s, policy.stale_after_s, policy.known_after_s
    ):
        freshness = Freshness.STALE

    def known(value: float | None) -> Signal:
        if value is None or freshness is Freshness.MISSING:
            return Signal(freshness=Freshness.MISSING)
        return Signal(freshness=freshness, value=value, age_s=age_s)

    waiting = sum([sample.waiting for sample in lasts])
    running = sum([sample.running for sample in lasts])
    gauges = Signals(
        waiting=known(float(waiting)),
        standing_queue=known(standing_queue),
        in_flight=known(float(waiting + running)),
        coverage=sum([age <= policy.stale_after_s for age in ages_s])
        / (len(ready) + observation.unlisted_ready),
    )
    if watched_s < policy.known_after_s:
        return gauges
    total = windows.total(watched_s)
    arrived = _arrived(policy, windows, ready, watched_s, age_s, now_s)
    bounds_s, latency, missed = windows.bounds_s, total.latency, total.missed
    share, target_s = policy.latency_percentile, policy.latency_target_s
    return replace(
        gauges,
        arrival_rps=known(arrived / watched_s),
        latency_s=known(percentile(bounds_s, latency, missed, share)),
        undecided_s=undecided(bounds_s, latency, missed, share, target_s),
        attainment=known(attainment(bounds_s, latency, missed, target_s)),
    )


def _arrived(
    policy: Policy,
    windows: Windows,
    ready: Sequence[Pod],
    watched_s: float,
    age_s: float,
    now_s: float,
) -> float:
    """Return the requests of the watched time, with those of replicas whose scrapes are old."""
    arrived = None
    if APART_S < age_s <= policy.stale_after_s:
        arrived = arrivals_together(windows, watched_s, age_s, now_s)
    if arrived is None:
        arrived = arrivals_extrapolated(windows, watched_s, now_s)
    if age_s > policy.stale_after_s:
        arrived += beyond_last_windows(windows, ready, watched_s, now_s, policy.stale_after_s)
    return arrived


def _oldest_s(
    policy: Policy, windows: Windows, observation: Observation, ages_s: Sequence[float]
) -> float:
    """Return the age of the oldest scrape of a ready pod, with those that have none yet."""
    now_s, age_s, last = observation.now_s, max(ages_s), windows.last
    if len(ages_s) < len(observation.ready):
        silent = (pod for pod in observation.ready if pod.uid not in last)
        age_s = max(age_s, *(_silent_s(policy, pod, now_s) for pod in silent))
    if observation.unlisted_ready:  # they have never been scraped
        age_s = max(age_s, now_s)
    return age_s


def _silent_s(policy: Policy, pod: Pod, now_s: float) -> float:
    """Return how long a ready pod has not been scraped; 0 within the stale limit of its start."""
    silent_s = now_s - serving_since_s(pod)
    return 0.0 if silent_s <= policy.stale_after_s else silent_s


def _freshness(policy: Policy, *, oldest_s: float, youngest_s: float) -> Freshness:
    if oldest_s <= policy.stale_after_s:
        return Freshness.FRESH
    return Freshness.STALE if youngest_s <= policy.absent_after_s else Freshness.MISSING
