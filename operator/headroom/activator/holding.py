"""Who waits for which service, for how long at most, and whose turn it is. Pure; time is given.

A request is admitted within bounds on count and bytes, and only where a replica can be warm before
its deadline. Once replicas are warm each gets so many at once as it may have, the least loaded
first, the longest waiting request first. One that refuses gets fewer at once until it answers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count, takewhile

from headroom.gateway.activation import Served
from headroom.gateway.values import Endpoint

ANSWERED_BEFORE_S = 0.25
"""Before its deadline: the gateway ends a request at the deadline, without a word of when to come
back."""
UNKNOWN_START_S = 10.0
"""What is said of a start that was never measured."""
HEAD_BYTES = 64 << 10
"""Of a request, beside its body; gateways let no longer ones pass."""
AGAIN_AFTER_S = 0.1
"""A request that a replica refused waits so long for its next try."""


class Why(StrEnum):
    """Why a request is refused; a label of the metrics."""

    TOO_MANY = "TooMany"
    TOO_LARGE = "TooLarge"
    TOO_LATE = "TooLate"
    EXPIRED = "Expired"
    LEAVING = "Leaving"
    UNKNOWN = "Unknown"
    MALFORMED = "Malformed"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer of the activator's own."""

    status: int
    why: Why
    words: str
    retry_after_s: int | None = None
    """When a replica is expected to be warm, in whole seconds, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is held at most."""

    requests: int = 4096
    requests_per_service: int = 2048
    body_bytes: int = 256 << 20
    longest_s: float = 900.0
    """Whatever deadline a request has."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One request that is held."""

    key: str
    number: int
    """In the order of arrival."""
    arrived_s: float
    until_s: float
    """When it is answered at the latest, by a refusal."""
    size: int = 0
    not_before_s: float = 0.0
    at: Endpoint | None = None
    """The replica that it was given to."""
    refused_by: frozenset[Endpoint] = frozenset()


@dataclass(frozen=True, slots=True)
class Turn:
    """What is due now."""

    given: tuple[tuple[Ticket, Endpoint], ...] = ()
    refused: tuple[tuple[Ticket, Refusal], ...] = ()


@dataclass(slots=True)
class _Line:
    """Those who wait for one service."""

    served: Served
    waiting: deque[Ticket] = field(default_factory=deque)
    busy: dict[Endpoint, int] = field(default_factory=dict)
    """Requests given to each replica and not answered yet."""
    most: dict[Endpoint, int] = field(default_factory=dict)
    """What a replica that has refused may have at once."""
    woken_s: float | None = None
    """When somebody first knocked while there was no replica."""

    @property
    def held(self) -> int:
        return len(self.waiting) + sum(self.busy.values())

    def warm_in_s(self, now_s: float) -> float:
        """Seconds until a replica is expected to be warm."""
        if self.served.replicas:
            return 0.0
        start_s = self.served.cold_start_s
        whole_s = UNKNOWN_START_S if start_s is None else start_s
        return max(0.0, whole_s - (now_s - (self.woken_s if self.woken_s is not None else now_s)))

    def free(self, refused_by: Container[Endpoint] = ()) -> Endpoint | None:
        """Give the replica with the fewest in flight, those that have refused last.

        None where all have what they may have.
        """
        free = (
            one
            for one in self.served.replicas
            if self.busy.get(one, 0) < self.most.get(one, self.served.in_flight)
        )
        return min(free, key=lambda one: (one in refused_by, self.busy.get(one, 0)), default=None)

    def release(self, host: Endpoint) -> None:
        """Take back what was given."""
        left = self.busy.get(host, 0) - 1
        if left > 0:
            self.busy[host] = left
        else:
            self.busy.pop(host, None)


class Holding:
    """All requests that are held, of all services."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._lines: dict[str, _Line] = {}
        self._numbers = count()
        self.arrived: dict[str, int] = {}
        """All that came for each service, refused ones too."""
        self._requests = 0
        self._bytes = 0
        self._leaving = False

    def serve(self, services: Iterable[Served]) -> None:
        """Take in what is served; whoever waits for a service that is gone is refused in turn."""
        served = {one.key: one for one in services}
        self.arrived = {key: number for key, number in self.arrived.items() if key in served}
        for key, one in served.items():
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = _Line(one)
                continue
            line.served = one
            if one.replicas:
                line.woken_s = None
            line.most = {host: most for host, most in line.most.items() if host in one.replicas}
        for key in [key for key in self._lines if key not in served]:
            line = self._lines[key]
            if not line.held:
                del self._lines[key]
            for ticket in line.waiting:
                ticket.until_s = -math.inf

    def leave(self) -> None:
        """Refuse whoever still waits, and whoever comes."""
        self._leaving = True

    def admit(self, key: str, now_s: float, timeout_s: float | None) -> Ticket | Refusal:
        """Hold a request that wants its answer within `timeout_s`, or refuse it."""
        line = self._lines.get(key)
        self.arrived[key] = self.arrived.get(key, 0) + 1
        if line is None:
            return Refusal(status=503, why=Why.UNKNOWN, words=f"{key} is not served here")
        if not line.served.replicas and line.woken_s is None:
            line.woken_s = now_s
        if self._leaving:
            return self._refusal(line, now_s, 503, Why.LEAVING, "this activator ends")
        bounds = self._bounds
        if self._requests >= bounds.requests or line.held >= bounds.requests_per_service:
            words = "too many requests are held until a replica is warm"
            return self._refusal(line, now_s, 429, Why.TOO_MANY, words)
        within_s = line.served.timeout_s if timeout_s is None else timeout_s
        within_s = min(within_s, line.served.timeout_s, bounds.longest_s)
        known = line.served.cold_start_s is not None
        if known and line.warm_in_s(now_s) > within_s:
            words = f"no replica is warm before the deadline, {within_s:g} s"
            return self._refusal(line, now_s, 503, Why.TOO_LATE, words)
        before_s = min(ANSWERED_BEFORE_S, 0.2 * within_s)
        ticket = Ticket(
            key=key,
            number=next(self._numbers),
            arrived_s=now_s,
            until_s=now_s + within_s - before_s,
            not_before_s=math.inf,  # its body is still to come
        )
        line.waiting.append(ticket)
        self._requests += 1
        return ticket

    def grow(self, ticket: Ticket, size: int, now_s: float) -> Refusal | None:
        """Count bytes of a request; refuse it where they are too many."""
        line = self._lines[ticket.key]
        if ticket.size + size > line.served.max_body_bytes + HEAD_BYTES:
            most = line.served.max_body_bytes
            words = f"a body may have {most} bytes (routing.maxBodyBytes)"
            return Refusal(status=413, why=Why.TOO_LARGE, words=words)
        if self._bytes + size > self._bounds.body_bytes:
            words = "too many bytes are held until a replica is warm"
            return self._refusal(line, now_s, 429, Why.TOO_MANY, words)
        ticket.size += size
        self._bytes += size
        return None

    def complete(self, ticket: Ticket) -> None:
        """The request is there as a whole and may be given to a replica."""
        ticket.not_before_s = 0.0

    def turn(self, now_s: float) -> Turn:
        """Give to replicas what they may have, and refuse what waits no longer."""
        refused = [one for line in self._lines.values() for one in self._expired(line, now_s)]
        given = [one for line in self._lines.values() for one in _granted(line, now_s)]
        return Turn(tuple(given), tuple(refused))

    def put_back(self, ticket: Ticket, now_s: float) -> None:
        """A replica refused it: it is in line where it was, and the replica gets fewer at once."""
        line, at = self._lines[ticket.key], ticket.at
        if at is not None:
            line.release(at)
            line.most[at] = max(1, line.busy.get(at, 0))
            ticket.refused_by |= {at}
        ticket.at, ticket.not_before_s = None, now_s + AGAIN_AFTER_S
        earlier = takewhile(lambda one: one.number < ticket.number, line.waiting)
        line.waiting.insert(sum(1 for _ in earlier), ticket)

    def expire(self, ticket: Ticket, now_s: float) -> Refusal:
        """Say what is answered to one that waits no longer."""
        words = "no replica was warm in time"
        return self._refusal(self._lines[ticket.key], now_s, 503, Why.EXPIRED, words)

    def answered(self, ticket: Ticket) -> None:
        """A replica answered: it may have one more at once again."""
        line, at = self._lines[ticket.key], ticket.at
        if at is not None and at in line.most:
            line.most[at] += 1
            if line.most[at] >= line.served.in_flight:
                del line.most[at]

    def done(self, ticket: Ticket) -> None:
        """The request has ended, however it did."""
        line = self._lines.get(ticket.key)  # None: refused, and its service is gone
        if line is not None and ticket.at is not None:
            line.release(ticket.at)
        elif line is not None and ticket in line.waiting:
            line.waiting.remove(ticket)
        ticket.at = None
        self._requests -= 1
        self._bytes -= ticket.size
        ticket.size = 0

    def held(self) -> dict[str, int]:
        """Count what waits or is being answered, by service; those without any are left out."""
        return {key: line.held for key, line in self._lines.items() if line.held}

    @property
    def requests(self) -> int:
        """All that are held."""
        return self._requests

    @property
    def body_bytes(self) -> int:
        """What they hold."""
        return self._bytes

    def _expired(self, line: _Line, now_s: float) -> Iterator[tuple[Ticket, Refusal]]:
        over = [one for one in line.waiting if self._leaving or now_s >= one.until_s]
        for ticket in over:
            line.waiting.remove(ticket)
            if self._leaving:
                yield ticket, self._refusal(line, now_s, 503, Why.LEAVING, "this activator ends")
            else:
                yield ticket, self.expire(ticket, now_s)

    def _refusal(self, line: _Line, now_s: float, status: int, why: Why, words: str) -> Refusal:
        again_s = max(1, math.ceil(line.warm_in_s(now_s)))
        return Refusal(status=status, why=why, words=words, retry_after_s=again_s)


def _granted(line: _Line, now_s: float) -> Iterator[tuple[Ticket, Endpoint]]:
    later: list[Ticket] = []
    while line.waiting and line.free() is not None:
        ticket = line.waiting.popleft()
        if ticket.not_before_s > now_s:
            later.append(ticket)
            continue
        host = line.free(ticket.refused_by)
        assert host is not None
        ticket.at = host
        line.busy[host] = line.busy.get(host, 0) + 1
        yield ticket, host
    line.waiting.extendleft(reversed(later))
