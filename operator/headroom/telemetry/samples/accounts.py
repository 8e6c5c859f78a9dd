"""Readings of a server → totals; quantities that it does not expose are derived. Pure.

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

from headroom.telemetry.pages.reading import Reading
from headroom.telemetry.samples.derived_batches import Batches, Span, batches_of
from headroom.telemetry.samples.derived_gauges import gauges_of, grown
from headroom.telemetry.samples.given_up import GivenUp


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
    """Requests that derived batches do not explain yet."""
    waiting: int | None = None
    running: int | None = None
    given_up: GivenUp = field(default_factory=GivenUp)


def with_counts(reading: Reading, before: Account | None, time_s: float) -> Reading:
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


def accounted(
    reading: Reading, before: Account | None, time_s: float, batch: Batch | None
) -> Account:
    """Return the account after a reading; `before` is None for a server that has restarted."""
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


def common_bounds_s(accounts: Mapping[str, Account]) -> tuple[float, ...]:
    """Return the latency bounds of the service's pods; () if no pod has a histogram."""
    for account in accounts.values():
        if account.reading.latency is not None:
            return account.reading.latency.bounds_s
    return ()
