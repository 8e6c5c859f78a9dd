"""A reading of a pod and the account before it → its sample. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from headroom.profiles.values import Profile
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import CostModel, PodSample
from headroom.scaling.values.tokens import EngineLimits, GenerationSample
from headroom.telemetry.bounds.physical_bounds import check_batch_time, check_items, whole
from headroom.telemetry.bounds.stated_limits import NOTHING_STATED
from headroom.telemetry.errors import InvalidMetric
from headroom.telemetry.pages.reading import Reading
from headroom.telemetry.samples.accounts import Account, Batch, accounted, with_counts
from headroom.telemetry.samples.given_up import GivenUp
from headroom.telemetry.samples.page_checks import (
    check_batches_between,
    check_places,
    has_restarted,
)

NO_LATENCY = LatencyCounts(bounds_s=(), counts=())


def sample_of(
    profile: Profile,
    reading: Reading,
    before: Account | None,
    *,
    pod: str,
    time_s: float,
    batch: Batch | None,
    bounds_s: tuple[float, ...],
    stated: EngineLimits = NOTHING_STATED,
) -> tuple[PodSample | None, Account]:
    """Return the sample of one pod (its UID), if there can be one yet, and the account after it.

    `batch` comes from the resource; None if the server exposes it. `bounds_s` are the histogram
    bounds of the service's other pods, for a histogram that exists only after the first request.
    `stated` are limits that the page may lack.

    Raises InvalidMetric.
    """
    check_places(profile, reading)
    if not (profile.arrived or profile.answered or profile.latency):
        reading = with_counts(reading, before, time_s)
    if before is not None and has_restarted(
        profile, reading, before.reading, time_s - before.time_s
    ):
        before = None
    if before is not None:
        check_batches_between(profile, reading, before.reading)
    elif reading.batches is not None and reading.batch_items is not None:
        check_items(profile, batches=reading.batches, items=reading.batch_items)
    account = accounted(reading, before, time_s, batch)
    if account.waiting is None or account.running is None:
        return None, account
    latency = _latency(profile, reading, bounds_s)
    counted = profile.latency is not None
    sample = PodSample(
        pod=pod,
        time_s=time_s,
        arrivals=account.arrivals,
        # Without a histogram, a miss would be the only request known to have ended.
        missed=(reading.missed or 0.0) if counted else 0.0,
        retried=reading.retried or 0.0,
        waiting=account.waiting,
        running=account.running,
        latency=latency,
        batches=account.executed.batches,
        batch_items=account.executed.items,
        batch_seconds=account.executed.seconds,
        cost=_cost(profile, reading),
        max_batch=batch.largest if batch is not None else _stated_batch(profile, reading),
        slots=batch.slots if batch is not None else 1,
        generation=_generation(reading, time_s, batch, stated, account.given_up),
    )
    return sample, account


def _stated_batch(profile: Profile, reading: Reading) -> int | None:
    """Return the largest batch where the server states it without a cost: it generates."""
    if reading.generation is None or not reading.max_batch:
        return None
    return whole(profile.max_batch[0].name, reading.max_batch)


def _generation(
    reading: Reading, time_s: float, batch: Batch | None, stated: EngineLimits, given_up: GivenUp
) -> GenerationSample | None:
    """Complete what the page says by what pod, resource and earlier pages say, and by the clock."""
    tokens = reading.generation
    if tokens is None:
        return None
    begun = max(0.0, (reading.missed or 0.0) - given_up.without_token)
    if begun:
        tokens = replace(tokens, given_up=begun)
    limits = tokens.limits
    sequences = limits.sequences or stated.sequences or (batch.largest if batch else None)
    chunk = limits.iteration_tokens or stated.iteration_tokens
    if (sequences, chunk) != (limits.sequences, limits.iteration_tokens):
        limits = replace(limits, sequences=sequences, iteration_tokens=chunk)
        tokens = replace(tokens, limits=limits)
    if tokens.engine_seconds is None and reading.idle_seconds is not None:
        # Only differences count, so the clock's zero does not matter.
        tokens = replace(tokens, engine_seconds=max(0.0, time_s - reading.idle_seconds))
    return tokens


def _latency(profile: Profile, reading: Reading, bounds_s: tuple[float, ...]) -> LatencyCounts:
    if reading.latency is not None:
        return reading.latency
    if profile.latency is None:
        return NO_LATENCY
    bounds_s = bounds_s or (*profile.latency.bounds_s, math.inf)
    return LatencyCounts(bounds_s=bounds_s, counts=(0.0,) * len(bounds_s))


def _cost(profile: Profile, reading: Reading) -> CostModel | None:
    """Return the cost from three gauges; None if one is missing or the server has not measured."""
    fixed, per_item, max_batch = reading.fixed_cost_s, reading.item_cost_s, reading.max_batch
    if fixed is None or per_item is None or max_batch is None:
        return None
    largest = whole(profile.max_batch[0].name, max_batch)
    if largest < 1:
        raise InvalidMetric(profile.max_batch[0].name, "must be at least 1", largest)
    if fixed + per_item == 0.0:
        return None
    cost = CostModel(fixed_s=fixed, per_item_s=per_item, max_batch=largest)
    check_batch_time(profile, cost.batch_s(largest))
    return cost
