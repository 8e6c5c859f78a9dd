"""Generated telemetry: sequences of pages, most of them faulty, with the true load.

A trial is drawn from its number alone, and a sequence of it from its path, so that any one can be
looked at again. Replicas take even arrivals; each ready pod exposes them, and each pod's pages fall
into episodes of one fault.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reliability.telemetry.figures import Figures
from reliability.telemetry.lies import Lie, tell
from reliability.telemetry.page_faults import Fault, page, spoilt
from reliability.telemetry.trials import Trial

TICK_S = 2.0


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
    """Requests that it had served at that page."""
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
