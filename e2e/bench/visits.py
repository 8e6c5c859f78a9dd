"""When replicas get their first and their last requests, by their own metrics.

A replica is looked at ten times a second from the moment that it has an address until it was
visited after it became ready, and again from the moment that it is told to leave.
"""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.watching import Watch, watching
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


@dataclass(slots=True)
class Visits:
    """Seconds, one for each replica."""

    to_first_s: list[float] = field(default_factory=list)
    """From readiness to the first request, or until it was told to leave without any."""
    to_last_s: list[float] = field(default_factory=list)
    """From being told to leave to the last answer."""


@contextlib.contextmanager
def visits(target: Node, service: Service) -> Iterator[Visits]:
    """Look at the replicas that come and go while the block runs."""
    found, ended, known = Visits(), threading.Event(), set[str]()
    with watching(target, "pods", service.namespace, *PATHS) as watch:
        time.sleep(2.0)  # what stands already is looked at when it leaves only
        standing = {seen.columns[0] for seen in watch.changes if seen.columns[3] == "True"}

        def begin() -> None:
            while not ended.wait(LOOK_EVERY_S):
                for seen in list(watch.changes):
                    name, label, address = seen.columns[:3]
                    if label == service.name and address and name not in known:
                        known.add(name)
                        look = _Look(target, watch, found, ended, name, address)
                        threading.Thread(
                            target=look.run, args=(name not in standing,), daemon=True
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

    def run(self, is_new: bool) -> None:
        with self.target.forward(self.address, 8000) as endpoint:
            page = f"{endpoint.url}/metrics"
            if is_new:
                self._first(page)
            while not self.ended.wait(LOOK_EVERY_S):
                if self._since(4) is not None:
                    self._last(page)
                    return

    def _since(self, column: int) -> float | None:
        """When the watch first told something in this column."""
        told = (seen for seen in self.watch.since(0.0) if seen.columns[0] == self.name)
        good = (one.time_s for one in told if one.columns[column] not in ("", "False"))
        return next(good, None)

    def _first(self, page: str) -> None:
        before: float | None = None
        while not self.ended.wait(LOOK_EVERY_S) and self._since(4) is None:
            ready_s, count = self._since(3), _requests(page)
            if count is not None and ready_s is None:
                before = count
            if count is not None and ready_s is not None and count > (before or 0.0):
                self.found.to_first_s.append(max(0.0, time.time() - ready_s))
                return
        ready_s, leaving_s = self._since(3), self._since(4)
        if ready_s is not None and leaving_s is not None:
            self.found.to_first_s.append(leaving_s - ready_s)

    def _last(self, page: str) -> None:
        leaving_s = self._since(4)
        assert leaving_s is not None
        before, last_s = None, leaving_s
        while (count := _requests(page)) is not None:
            if before is not None and count > before:
                last_s = time.time()
            before = count
            time.sleep(LOOK_EVERY_S)
        self.found.to_last_s.append(last_s - leaving_s)


def _requests(page: str) -> float | None:
    """Read how many requests have ended; None where nobody answers."""
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
