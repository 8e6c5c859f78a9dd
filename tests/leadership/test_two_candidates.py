"""Two candidates in any order of events never lead at once."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.controller.leadership.candidate import Candidate
from headroom.controller.leadership.record import LeaseRecord


@dataclass
class Server:
    """Stores one Lease, and swaps it only for who knows its version."""

    stored: LeaseRecord | None = None

    def write(self, record: LeaseRecord) -> LeaseRecord | None:
        if record.version != (self.stored.version if self.stored else ""):
            return None
        self.stored = replace(record, version=str(int(record.version or 0) + 1))
        return self.stored


@dataclass
class Actor:
    """A candidate with a clock of its own, on a network that it cannot rely on."""

    candidate: Candidate
    offset_s: float
    rate: float
    led: list[tuple[float, float]] = field(default_factory=list)
    """Periods in which it would have written, in true time."""

    def clock(self, true_s: float) -> float:
        return self.offset_s + self.rate * true_s

    def with_written(self, record: LeaseRecord, asked_s: float, true_s: float) -> None:
        self.candidate = self.candidate.with_written(
            record, self.clock(asked_s), self.clock(true_s)
        )
        left_s = self.candidate.remaining_s(self.clock(true_s)) / self.rate
        self.led.append((true_s, true_s + left_s))

    def with_record(self, record: LeaseRecord | None, true_s: float) -> None:
        self.candidate = self.candidate.with_record(record, self.clock(true_s))
        if not self.candidate.holds and self.led:
            begun_s, ends_s = self.led[-1]
            self.led[-1] = (begun_s, min(ends_s, true_s))


RATES = st.sampled_from([0.86, 1.0, 1.14])
DELAYS_S = (0.01,) * 12 + (0.5, 3.0, 9.0, 11.0, 25.0)
"""Delays of a request or its answer on the network, or of a process that is stopped."""
FATES = ("answered",) * 8 + ("request lost", "answer lost")


@settings(max_examples=800)
@given(seed=st.integers(0, 2**32), rates=st.tuples(RATES, RATES))
def test_two_never_lead_at_once(seed: int, rates: tuple[float, float]) -> None:
    """Whatever is delayed, lost or paused, with clocks that differ by up to a third in rate."""
    chance = random.Random(seed)
    server, order = Server(), itertools.count()
    actors = [
        Actor(Candidate(identity=name), chance.uniform(-1e6, 1e6), rate)
        for name, rate in zip("ab", rates, strict=True)
    ]
    agenda: list[tuple[float, int, Callable[[float], None]]] = []

    def later(at_s: float, what: Callable[[float], None]) -> None:
        heapq.heappush(agenda, (at_s, next(order), what))

    def request(true_s: float, serve: Callable[[], None], done: Callable[[float], None]) -> bool:
        """Send; `serve` runs when it arrives, if it does, and `done` when the answer does."""
        there_s, back_s = chance.choice(DELAYS_S), chance.choice(DELAYS_S)
        fate = chance.choice(FATES)
        if fate != "request lost":
            later(true_s + there_s, lambda _: serve())
        if fate == "answered":
            later(true_s + there_s + back_s, done)
        return fate == "answered"

    def attempt(actor: Actor, true_s: float) -> None:
        found: list[LeaseRecord | None] = []

        def read_done(at_s: float) -> None:
            actor.with_record(found[0], at_s)
            later(at_s + chance.choice(DELAYS_S), lambda then_s: claim(actor, then_s))

        if not actor.candidate.must_read:
            claim(actor, true_s)
        elif not request(true_s, lambda: found.append(server.stored), read_done):
            again(actor, true_s + 4.0)

    def claim(actor: Actor, true_s: float) -> None:
        claimed = actor.candidate.claim(actor.clock(true_s), f"{true_s}")
        stored: list[LeaseRecord | None] = []

        def write_done(at_s: float) -> None:
            if stored[0] is None:
                actor.candidate = actor.candidate.with_unknown_outcome()
            else:
                actor.with_written(stored[0], true_s, at_s)
            again(actor, at_s)

        if claimed is None:
            again(actor, true_s)
            return
        sent_s = true_s + chance.choice(
            DELAYS_S
        )  # stopped between the look at the clock and the sending
        if not request(sent_s, lambda: stored.append(server.write(claimed)), write_done):
            actor.candidate = actor.candidate.with_unknown_outcome()
            again(actor, sent_s + 4.0)

    def again(actor: Actor, true_s: float) -> None:
        pause_s = actor.candidate.pause_s(actor.clock(true_s)) / actor.rate
        later(true_s + pause_s + 0.01, lambda at_s: attempt(actor, at_s))

    for actor in actors:
        later(chance.uniform(0.0, 5.0), partial(attempt, actor))
    for _ in range(300):
        at_s, _, what = heapq.heappop(agenda)
        what(at_s)
    for one, other in itertools.product(actors[0].led, actors[1].led):
        assert min(one[1], other[1]) <= max(one[0], other[0]), (one, other)
