"""Generated telemetry: sequences of pages, most of them faulty, with the true load.

A trial is drawn from its number alone, and a sequence of it from its path, so that any one can be
looked at again. Replicas take even arrivals; each ready pod exposes them, and each pod's pages fall
into episodes of one fault.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from headroom.scaling import Routing
from reliability.figures import FULL_BATCH_RPS, MODEL, Figures
from reliability.lies import Lie, tell


class Fault(StrEnum):
    """A fault of a page."""

    MISSING = "no page"
    STALE = "an earlier page with its time, as from a Prometheus"
    EMPTY = "an empty page"
    HTML = "HTML"
    CUT = "cut in the middle of a line"
    PARTIAL = "series missing"
    NAN = "NaN"
    NEGATIVE = "negative"
    INFINITE = "+Inf"
    GARBLED = "letters for a number"
    TWICE = "series twice"
    OTHER_MODEL = "another model's series"
    NEIGHBOUR = "the neighbour's model label next to the own"
    RESTARTED = "counters restart"
    FALLING = "a histogram that falls"
    INFLATED = "absurdly many arrivals at each scrape"


TELLS_NOTHING = frozenset(Fault) - {
    Fault.STALE,
    Fault.NEIGHBOUR,
    Fault.RESTARTED,
    Fault.INFLATED,
}
"""Pages with these faults are no sample: never half of one."""


TICK_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is drawn once for a tree of sequences."""

    number: int
    replicas: int
    min_replicas: int
    max_replicas: int
    rate_rps: float
    hold_s: float
    """The scale-down window."""
    fault_share: float
    """Chance per pod and tick that an episode of a fault begins."""
    kinds: tuple[Fault | Lie, ...]
    liars: int = 0
    """Replicas whose pages are wrong; 0: each may have faults. The first ones."""
    routing: Routing = Routing.STICKY
    loud: bool = False
    """Whether each page shows that it lies, so that all replicas may lie."""

    @property
    def all_needed(self) -> bool:
        """Return whether one replica fewer could not carry the arrivals below the ceiling of 0.8.

        No observer can know that while all replicas report wrong figures in well-formed pages.
        """
        if self.liars == self.replicas and not self.loud:
            return False
        if self.liars == 0 and Fault.INFLATED in self.kinds:
            return False
        return self.needed_by_load

    @property
    def needed_by_load(self) -> bool:
        """Return the same for an observer who knows the arrivals."""
        return self.rate_rps > 0.8 * FULL_BATCH_RPS * (self.replicas - 1)


_ROUTINGS = (Routing.STICKY, Routing.LEAST_IN_FLIGHT, Routing.RANDOM, Routing.ROUND_ROBIN)


def draw(number: int) -> Trial:
    """Draw the trial of this number: two of three need all their replicas, one needs the fewest."""
    chance = random.Random(f"trial {number}")
    replicas = chance.randint(1, 3)
    carried_rps = 0.8 * FULL_BATCH_RPS
    needs_all = chance.random() < 2 / 3
    load = replicas - chance.uniform(0.1, 0.7) if needs_all else chance.uniform(0.0, 0.3)
    kinds: tuple[Fault | Lie, ...] = tuple(chance.sample(list(Fault), k=chance.randint(1, 4)))
    liars, loud = 0, False
    if number % 2:
        loud = chance.random() < 0.1
        kinds = tuple(chance.sample(list(Lie), k=chance.randint(1, 3)))
        replicas = chance.randint(2, 4)
        load = replicas - chance.uniform(0.1, 0.7) if needs_all else chance.uniform(0.0, 0.3)
        liars = 1 if chance.random() < 0.8 else replicas
        if loud:
            kinds, liars = (Lie.ABSURD,), replicas
    return Trial(
        number=number,
        replicas=replicas,
        min_replicas=1,
        max_replicas=chance.randint(replicas, 6),
        rate_rps=load * carried_rps,
        hold_s=chance.choice((4.0, 6.0, 10.0)),
        fault_share=chance.choice((0.0, 0.02, 0.1, 0.3)),
        kinds=kinds,
        liars=liars,
        routing=chance.choice(_ROUTINGS),
        loud=loud,
    )


@dataclass(slots=True)
class Server:
    """One replica: what it has counted, and what is wrong with its pages now."""

    uid: str
    served: float = 0.0
    fault: Fault | Lie | None = None
    ticks_left: int = 0
    episode: int = 0
    """A number that all pages of an episode of a lie share."""
    last_served: int = 0
    """What it had served at that page."""
    last: str = ""
    """Its last page without a fault."""
    since_last: int = 0
    """Ticks that have passed since then."""


class Scraped(NamedTuple):
    """The result of one scrape of a pod."""

    pod: str
    fault: Fault | Lie | None
    page: str | None
    """None: nothing came."""
    age_s: float = 0.0


def evenness(replicas: int) -> list[float]:
    """Return the share of each replica over the mean: 3 % apart, so that no two are alike."""
    middle = (replicas - 1) / 2
    return [1.0 + 0.03 * (place - middle) for place in range(replicas)]


class Pages:
    """The pages of a trial, tick by tick; with the same trial and path always the same."""

    def __init__(self, trial: Trial, path: str = "", servers: Sequence[Server] = ()) -> None:
        self._trial = trial
        self._chance = random.Random(f"pages {trial.number} {path}")
        self._servers = list(servers) or [Server(f"pod-{n}") for n in range(trial.replicas)]
        self._even = evenness(trial.replicas)

    def branch(self, path: str) -> Pages:
        """Go on from here by chances of the path's own."""
        return Pages(self._trial, path, [replace(server) for server in self._servers])

    def next(self, *, honest: bool = False) -> list[Scraped]:
        """Return what is scraped of each pod; without any new fault if all are `honest` now."""
        share = self._trial.rate_rps * TICK_S / len(self._servers)
        liars = self._trial.liars or len(self._servers)
        return [
            self._of(place, share * self._even[place], may_fail=place < liars and not honest)
            for place in range(len(self._servers))
        ]

    def _of(self, place: int, arrivals: float, *, may_fail: bool) -> Scraped:
        server = self._servers[place]
        server.served += arrivals
        server.since_last += 1
        if server.ticks_left == 0:
            was_heard, server.fault = server.fault is None, None
            if may_fail and self._chance.random() < self._trial.fault_share:
                server.fault = self._chance.choice(self._trial.kinds)
                server.episode = self._chance.randrange(10**6)
                server.ticks_left = self._chance.choice((1, 2, 4, 8, 12, 20, 60))
                if server.fault is Fault.RESTARTED:  # arrivals during its silence are unknown
                    server.served = arrivals if was_heard else server.served
                    server.ticks_left = 1
        server.ticks_left = max(0, server.ticks_left - 1)
        text = page(int(server.served))
        if server.fault is None:
            server.last, server.since_last = text, 0
            server.last_served = int(server.served)
            return Scraped(server.uid, None, text)
        if server.fault is Fault.STALE and server.last:
            return Scraped(server.uid, Fault.STALE, server.last, server.since_last * TICK_S)
        if isinstance(server.fault, Lie):
            true, earlier = Figures.of(int(server.served)), Figures.of(server.last_served)
            other = Figures.of(int(self._servers[place - 1].served))
            text = tell(server.fault, true, earlier, other, server.episode, self._chance)
            return Scraped(server.uid, server.fault, text)
        return Scraped(server.uid, server.fault, spoilt(text, server.fault, self._chance))


def page(served: int, model: str = MODEL) -> str:
    """Expose a server that answered so many requests one by one, and has none in flight."""
    return Figures.of(served).text(model)


def spoilt(text: str, fault: Fault, chance: random.Random) -> str | None:
    """Do to a page what the fault says; None where nothing comes."""
    lines = text.splitlines(keepends=True)
    place = chance.randrange(len(lines))
    name = lines[place].rpartition(" ")[0]
    match fault:
        case Fault.MISSING | Fault.STALE:
            return None
        case Fault.EMPTY:
            return ""
        case Fault.HTML:
            return "<html><body>Bad gateway</body></html>\n"
        case Fault.CUT:
            return text[: chance.randrange(1, len(text) - 1)]
        case Fault.PARTIAL:
            return "".join(lines[:_NEEDED][: chance.randrange(_NEEDED)])
        case Fault.NAN | Fault.NEGATIVE | Fault.INFINITE | Fault.GARBLED:
            lines[place] = f"{name} {_VALUES[fault]}\n"
            return "".join(lines)
        case Fault.TWICE:
            return text + lines[place]
        case Fault.OTHER_MODEL:
            return text.replace(MODEL, "bert")
        case Fault.NEIGHBOUR:
            return text + page(10**9, "bert")
        case Fault.FALLING:
            bucket, _, count = next(line for line in lines if 'le="0.5"' in line).rpartition(" ")
            return text.replace(f"{bucket} {count}", f"{bucket} {int(count) + 1}\n")
        case Fault.INFLATED:
            return page(10**15)
    return text


_NEEDED = 4
"""Lines without which there is no sample, at the top of the page."""
_VALUES = {
    Fault.NAN: "NaN",
    Fault.NEGATIVE: "-7",
    Fault.INFINITE: "+Inf",
    Fault.GARBLED: "many",
}
