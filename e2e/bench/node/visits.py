"""Records the times of the first and the last request of each replica, from its own metrics.

A replica is looked at ten times a second while it is not known that it was visited since it became
ready, and again from the moment that it is deleted. A killed replica becomes ready again.
"""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.node.watching import Seen, Watch, watching
from cluster import Node
from scenarios.world import Service

LOOK_EVERY_S = 0.1
PATHS = (
    ".metadata.name",
    ".metadata.labels.headroom\\.dev/inference-service",
    ".status.podIP",
    '.status.conditions[?(@.type=="Ready")].status',
    ".metadata.deletionTimestamp",
)
READY, LEAVING = 3, 4
"""Columns."""


@dataclass(frozen=True, slots=True)
class Life:
    """Period in which a replica was ready; an end of None: it is still ready."""

    ready_s: float
    end_s: float | None


def lives(changes: Sequence[Seen], killed_s: Sequence[float] = ()) -> list[Life]:
    """Return the lives of a replica, from the events of a watch and the times of kills.

    A kill ends a life at once: the watch reports it up to a second later, and until then no one can
    be visited.
    """
    found: list[Life] = []
    is_ready, ready_s = False, None
    known = [(seen.time_s, _is_ready(seen)) for seen in changes]
    for time_s, now_ready in sorted([*known, *((at_s, None) for at_s in killed_s)], key=_time):
        if now_ready and not is_ready:
            ready_s = time_s
        elif not now_ready and ready_s is not None:
            found.append(Life(ready_s, time_s))
            ready_s = None
        is_ready = is_ready if now_ready is None else now_ready
    return found if ready_s is None else [*found, Life(ready_s, None)]


def _is_ready(seen: Seen) -> bool:
    return seen.columns[READY] == "True" and not seen.columns[LEAVING]


def _time(event: tuple[float, bool | None]) -> float:
    return event[0]


@dataclass(slots=True)
class Visits:
    """Seconds, one for each life of a replica, and one for each replica."""

    to_first_s: list[float] = field(default_factory=list)
    """From readiness to the first request, or to the end of a life without any."""
    to_last_s: list[float] = field(default_factory=list)
    """Return the seconds from deletion to the last answer."""
    killed_s: dict[str, list[float]] = field(default_factory=dict)

    def kills(self, name: str) -> None:
        """Record that a replica is about to be killed."""
        self.killed_s.setdefault(name, []).append(time.time())


@contextlib.contextmanager
def visits(target: Node, service: Service) -> Iterator[Visits]:
    """Look at the replicas that come and go while the block runs."""
    found, ended, known = Visits(), threading.Event(), set[str]()
    with watching(target, "pods", service.namespace, *PATHS) as watch:
        time.sleep(2.0)  # existing replicas were visited before
        standing = {seen.columns[0] for seen in watch.changes if _is_ready(seen)}

        def begin() -> None:
            while not ended.wait(LOOK_EVERY_S):
                for seen in list(watch.changes):
                    name, label, address = seen.columns[:3]
                    if label == service.name and address and name not in known:
                        known.add(name)
                        look = _Look(target, watch, found, ended, name, address)
                        threading.Thread(
                            target=look.run, args=(int(name in standing),), daemon=True
                        ).start()

        looker = threading.Thread(target=begin, daemon=True)
        looker.start()
        try:
            yield found
        finally:
            ended.set()
            looker.join()


@dataclass(slots=True)
class _Look:
    """One replica."""

    target: Node
    watch: Watch
    found: Visits
    ended: threading.Event
    name: str
    address: str

    def run(self, lives_known: int) -> None:
        with self.target.forward(self.address, 8000) as endpoint:
            page = f"{endpoint.url}/metrics"
            before: float | None = None
            while not self.ended.wait(LOOK_EVERY_S):
                if self._leaving_s() is None and self._is_visited(lives_known):
                    continue
                count = _requests(page)
                for life in self._lives()[lives_known:]:
                    if life.end_s is not None:
                        self.found.to_first_s.append(life.end_s - life.ready_s)
                    elif count is not None and count > (before or 0.0):
                        self.found.to_first_s.append(max(0.0, time.time() - life.ready_s))
                    else:
                        break
                    before, lives_known = None, lives_known + 1
                leaving_s = self._leaving_s()
                if leaving_s is not None:
                    self._last(page, leaving_s)
                    return
                if not self._is_ready() and count is not None:
                    before = count

    def _lives(self) -> list[Life]:
        rows = [seen for seen in self.watch.since(0.0) if seen.columns[0] == self.name]
        return lives(rows, self.found.killed_s.get(self.name, ()))

    def _is_ready(self) -> bool:
        return any(life.end_s is None for life in self._lives())

    def _is_visited(self, lives_known: int) -> bool:
        return self._is_ready() and len(self._lives()) == lives_known

    def _leaving_s(self) -> float | None:
        """Return when the watch first showed the deletion."""
        rows = (seen for seen in self.watch.since(0.0) if seen.columns[0] == self.name)
        return next((one.time_s for one in rows if one.columns[LEAVING]), None)

    def _last(self, page: str, leaving_s: float) -> None:
        before, last_s = None, leaving_s
        while (count := _requests(page)) is not None:
            if before is not None and count > before:
                last_s = time.time()
            before = count
            time.sleep(LOOK_EVERY_S)
        self.found.to_last_s.append(last_s - leaving_s)


def _requests(page: str) -> float | None:
    """Read how many requests have ended; None without an answer."""
    try:
        with urllib.request.urlopen(page, timeout=2) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return None
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if line.partition("{")[0].endswith("_requests_total")
    )
