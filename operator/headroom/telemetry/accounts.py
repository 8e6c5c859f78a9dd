"""Readings of a server → samples; quantities it does not expose are derived. Pure.

    arrivals    counter of arrived requests, else ended + given up + in flight; never decreases,
                because a request that ends between two counters of the page would be missing for a
                moment
    in flight   gauge, else waiting + running
    waiting     gauge, else queue time per second (Little's law), else requests in flight above a
                full batch
    running     gauge, else execution time per second, else requests in flight up to a full batch
    batches     counters of batches, their requests and their seconds; if the seconds are summed
                over requests, they are divided by requests per batch; without counters, a batch is
                the average number of requests that run in a slot

Rates need two pages: if a quantity is derived, a pod's first sample comes with its second page.
Example of the last rule: 120 requests ended in 2 s and had spent 12 s in execution, so 6 ran at a
time; each of 20 batches of 6 took 0.1 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headroom.profiles.values import Profile
from headroom.scaling.latency_counts import LatencyCounts
from headroom.scaling.values.observation import CostModel, PodSample
from headroom.scaling.values.tokens import EngineLimits, GenerationSample
from headroom.telemetry.derived_batches import Batches, Span, batches_of
from headroom.telemetry.derived_gauges import gauges_of, grown
from headroom.telemetry.errors import InvalidMetric
from headroom.telemetry.given_up import GivenUp
from headroom.telemetry.page_checks import check_batches_between, check_places, has_restarted
from headroom.telemetry.physical_bounds import check_items, whole
from headroom.telemetry.reading import Reading
from headroom.telemetry.stated_limits import NOTHING_STATED

NO_LATENCY = LatencyCounts(bounds_s=(), counts=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Maximum batch size and parallel slots of a server that does not expose them."""

    largest: int
    slots: int = 1

    @property
    def room(self) -> int:
        """Maximum number of requests that run at the same time."""
        return self.largest * self.slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The last reading of one pod, with the derived totals up to it."""

    time_s: float
    reading: Reading
    arrivals: float
    executed: Batches = field(default_factory=Batches)
    open: Span = field(default_factory=Span)
    """What derived batches do not explain yet."""
    waiting: int | None = None
    running: int | None = None
    given_up: GivenUp = field(default_factory=GivenUp)


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
        reading = _with_counts(reading, before, time_s)
    if before is not None and has_restarted(
        profile, reading, before.reading, time_s - before.time_s
    ):
        before = None
    if before is not None:
        check_batches_between(profile, reading, before.reading)
    elif reading.batches is not None and reading.batch_items is not None:
        check_items(profile, batches=reading.batches, items=reading.batch_items)
    account = _account(reading, before, time_s, batch)
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


def _with_counts(reading: Reading, before: Account | None, time_s: float) -> Reading:
    """Count the requests of a server that does not: those by which the ones in flight decreased.

    A lower bound, since one that comes and one that goes between two pages are not seen. What ran
    between the pages is the mean of both.
    """
    if before is None:
        return replace(reading, answered=0.0, running_seconds=0.0)
    then = before.reading
    ended = max(0.0, then.waiting_and_running - reading.waiting_and_running)
    running = ((then.running or 0.0) + (reading.running or 0.0)) / 2.0
    return replace(
        reading,
        answered=(then.answered or 0.0) + ended,
        running_seconds=(then.running_seconds or 0.0) + running * (time_s - before.time_s),
    )


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


def _account(
    reading: Reading, before: Account | None, time_s: float, batch: Batch | None
) -> Account:
    elapsed_s = time_s - before.time_s if before is not None else 0.0
    waiting, running = gauges_of(
        reading,
        before.reading if before is not None else None,
        elapsed_s=elapsed_s,
        room=batch.room if batch is not None else 1,
    )
    arrivals, answered = reading.arrived, _answered(reading)
    given_up = GivenUp.of(reading, before.given_up if before is not None else None, answered)
    if arrivals is None:
        in_flight = reading.in_flight
        if in_flight is None:
            in_flight = float((waiting or 0) + (running or 0))
        arrivals = answered + max(reading.missed or 0.0, given_up.begun) + in_flight
    if before is not None:
        arrivals = max(arrivals, before.arrivals)
    executed, open_ = _batches(reading, before, elapsed_s, batch)
    return Account(
        time_s=time_s,
        reading=reading,
        arrivals=arrivals,
        executed=executed,
        open=open_,
        waiting=waiting,
        running=running,
        given_up=given_up,
    )


def _answered(reading: Reading) -> float:
    if reading.answered is not None:
        return reading.answered
    return reading.latency.counts[-1] if reading.latency is not None else 0.0


def _batches(
    reading: Reading, before: Account | None, elapsed_s: float, batch: Batch | None
) -> tuple[Batches, Span]:
    """Return the totals of batches, and what they do not explain yet."""
    items_now = reading.batch_items if reading.batch_items is not None else _answered(reading)
    if reading.batches is not None and reading.batch_seconds is not None:
        return Batches(reading.batches, items_now, reading.batch_seconds), Span()
    if before is None:
        return Batches(), Span()
    known, rest = before.executed, Span()
    spent_s = grown(reading, before.reading, "running_seconds") or 0.0
    ended = _answered(reading) - _answered(before.reading) if spent_s else 0.0
    counted = grown(reading, before.reading, "batches")
    if counted is None:
        more, rest = batches_of(
            before.open,
            elapsed_s=elapsed_s,
            ended=ended,
            spent_s=spent_s,
            largest=batch.largest if batch is not None else math.inf,
            slots=batch.slots if batch is not None else 1,
        )
        return known.plus(more), rest
    if ended > 0.0:
        known = known.plus(Batches(counted, ended, spent_s * counted / ended))
    return known, rest


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
    return CostModel(fixed_s=fixed, per_item_s=per_item, max_batch=largest)


def common_bounds_s(accounts: Mapping[str, Account]) -> tuple[float, ...]:
    """Return the latency bounds of the service's pods; () if no pod has a histogram."""
    for account in accounts.values():
        if account.reading.latency is not None:
            return account.reading.latency.bounds_s
    return ()
