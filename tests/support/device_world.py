"""A replica in virtual time: the server's own scheduler, and a device of any speed.

Discrete events only: nothing waits here, and the same seed gives the same history.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from headroom_server.scheduling.admission import Caps, Refusal
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.scheduling.scheduler import Scheduler

BATCH = 8
FIXED_S, PER_ITEM_S = 0.006, 0.0005
IDEAL_RPS = BATCH / (FIXED_S + PER_ITEM_S * BATCH)


class Ask(NamedTuple):
    """A future request."""

    time_s: float
    deadline_s: float | None = 0.1
    """From its arrival."""
    priority: int = 5
    tenant: str = ""
    length: int = 0
    leaves_s: float | None = None
    """Time when its client leaves, from its arrival."""


class End(NamedTuple):
    """End of a request, and its time."""

    ask: Ask
    outcome: str
    time_s: float

    @property
    def good(self) -> bool:
        due_s = self.ask.deadline_s
        return self.outcome == "ok" and (due_s is None or self.time_s <= self.ask.time_s + due_s)

    @property
    def latency_s(self) -> float:
        return self.time_s - self.ask.time_s


@dataclass
class Device:
    """The true duration of a batch: a line that changes with time, with noise."""

    slowness: Callable[[float], float] = lambda _: 1.0
    noise: float = 0.02
    gap_s: float = 0.0002
    answer_s: Callable[[float], float] = lambda _: 0.001
    per_length: Callable[[int], float] = lambda _: 1.0

    def batch_s(self, items: int, length: int, now_s: float, chance: random.Random) -> float:
        line_s = FIXED_S + PER_ITEM_S * items * self.per_length(length)
        return line_s * self.slowness(now_s) * chance.lognormvariate(0.0, self.noise)


def poisson(rate_rps: float, begin_s: float, end_s: float, seed: int) -> Iterator[float]:
    chance, now_s = random.Random(seed), begin_s
    while (now_s := now_s + chance.expovariate(rate_rps)) < end_s:
        yield now_s


@dataclass
class Replica:
    """One device, or more, behind one scheduler."""

    device: Device = field(default_factory=Device)
    others: tuple[Device, ...] = ()
    caps: Caps = field(default_factory=lambda: Caps(4096))
    seed: int = 1
    lengths: tuple[int, ...] = (0,)
    ends: list[End] = field(default_factory=list)
    batches: list[tuple[float, SealedBatch[Ask]]] = field(default_factory=list)
    took: list[int] = field(default_factory=list)
    """Device of each batch."""
    retries_s: list[int] = field(default_factory=list)
    busy_s: float = 0.0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.devices = (self.device, *self.others)
        self.scheduler: Scheduler[Ask] = Scheduler(
            BATCH, self.caps, chance=self.chance.random, devices=len(self.devices)
        )
        timings = [
            (b, self.device.batch_s(b, length, 0.0, self.chance), length)
            for length in self.lengths
            for b in range(1, BATCH + 1)
        ]
        self.scheduler.seed(CostModel.from_warm_up(timings), None)

    def run(self, asks: Iterable[Ask]) -> list[End]:
        """Serve all arrivals until nothing waits."""
        count = itertools.count()
        events: list[tuple[float, int, Callable[[float], None]]] = []
        keys = itertools.count()
        free = list(range(len(self.devices)))

        def at(time_s: float, what: Callable[[float], None]) -> None:
            heapq.heappush(events, (time_s, next(count), what))

        def finish(entry: QueueEntry[Ask], outcome: str, now_s: float) -> None:
            self.ends.append(End(entry.payload, outcome, now_s))

        def take(number: int, now_s: float) -> None:
            sealed = self.scheduler.seal(now_s, number)
            for entry in sealed.expired:
                finish(entry, "expired", now_s)
                self.scheduler.record_answer(entry, now_s, answered=False)
            if not sealed.batch:
                free.append(number)
                return
            self.batches.append((now_s, sealed))
            self.took.append(number)
            device = self.devices[number]
            seconds = device.batch_s(sealed.items, sealed.length, now_s, self.chance)
            self.busy_s += seconds
            at(now_s + seconds, lambda end_s: over(number, sealed, now_s, end_s))

        def over(number: int, sealed: SealedBatch[Ask], began_s: float, end_s: float) -> None:
            device, seconds = self.devices[number], end_s - began_s
            self.scheduler.record_batch(sealed, began_s, seconds, whole=True, device=number)
            at(end_s + device.answer_s(end_s), lambda now_s: answer(sealed, now_s))
            at(end_s + device.gap_s, lambda now_s: take(number, now_s))

        def answer(sealed: SealedBatch[Ask], now_s: float) -> None:
            for entry in sealed.batch:
                finish(entry, "ok", now_s)
                self.scheduler.record_answer(entry, now_s, answered=True)

        def leave(entry: QueueEntry[Ask], outcome: str, now_s: float) -> None:
            if self.scheduler.withdraw(entry.key):
                finish(entry, outcome, now_s)
                if outcome == "expired":
                    self.scheduler.record_answer(entry, now_s, answered=False)

        def arrive(ask: Ask, now_s: float) -> None:
            due_s = None if ask.deadline_s is None else now_s + ask.deadline_s
            entry = QueueEntry(
                next(keys), 1, now_s, due_s, ask, ask.length, ask.priority, ask.tenant, 64
            )
            offer = self.scheduler.offer(entry, now_s)
            for one in offer.evicted:
                finish(one, Refusal.EVICTED, now_s)
            if offer.refusal is not None:
                self.retries_s.append(offer.retry_after_s)
                finish(entry, offer.refusal, now_s)
                return
            if due_s is not None:
                at(due_s, lambda then_s: leave(entry, "expired", then_s))
            if ask.leaves_s is not None:
                at(now_s + ask.leaves_s, lambda then_s: leave(entry, "cancelled", then_s))
            if free:
                take(free.pop(0), now_s)

        coming = iter(asks)
        ask = next(coming, None)
        while ask is not None or events:
            if ask is not None and (not events or ask.time_s <= events[0][0]):
                arrive(ask, ask.time_s)
                ask = next(coming, None)
            else:
                now_s, _, what = heapq.heappop(events)
                what(now_s)
        return self.ends
