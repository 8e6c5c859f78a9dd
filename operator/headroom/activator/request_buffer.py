"""The held requests of all services: admission, deadlines and dispatch order. Pure.

A request is admitted within bounds on count and bytes, and only if a replica can be warm before its
deadline. Warm replicas receive requests up to their in-flight limit: least loaded replica first,
oldest request first. A replica that refuses a request gets a lower limit until it answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count

from headroom.activator import refusals
from headroom.activator.held_request import (
    HEAD_BYTES,
    Bounds,
    Dispatch,
    HeldRequest,
    Refusal,
    namespace_of,
)
from headroom.activator.service_queue import ServiceQueue
from headroom.fair_share import FairShare
from headroom.gateway.activator_messages import Served
from headroom.gateway.values import Endpoint

ANSWERED_BEFORE_S = 0.25
"""Time before its deadline at which a request is refused: at the deadline the gateway ends it
without a Retry-After."""
FORWARD_BYTES = 256 << 10
"""Memory of a request that is being forwarded, besides its body: what waits in both directions."""
AGAIN_AFTER_S = 0.1
"""Delay before the next attempt of a request that a replica refused, and before that replica gets
another one, unless it answers one meanwhile."""


class RequestBuffer:
    """The held requests of all services."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._lines: dict[str, ServiceQueue] = {}
        self._numbers = count()
        self.arrived: dict[str, int] = {}
        """Requests that arrived for each service, including refused ones."""
        self._requests = FairShare(bounds.requests)
        self._bytes = FairShare(bounds.body_bytes)
        self._forwarded: Counter[str] = Counter()
        """Requests that are being forwarded, by namespace."""
        self._leaving = False

    def serve(self, services: Iterable[Served]) -> None:
        """Set the services; requests of removed services are refused at the next dispatch."""
        served = {one.key: one for one in services}
        self.arrived = {key: number for key, number in self.arrived.items() if key in served}
        for key, one in served.items():
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = ServiceQueue(one)
            else:
                line.serve(one)
        for key in [key for key in self._lines if key not in served]:
            self._lines[key].known = False
            if not self._lines[key].held:
                del self._lines[key]

    def leave(self) -> None:
        """Refuse all waiting requests and all new ones."""
        self._leaving = True

    def admit(self, key: str, now_s: float, timeout_s: float | None) -> HeldRequest | Refusal:
        """Hold a request with a deadline in `timeout_s` seconds, or refuse it."""
        line = self._lines.get(key)
        self.arrived[key] = self.arrived.get(key, 0) + 1
        if line is None or not line.known:
            return refusals.unknown(key)
        if not line.served.replicas and line.woken_s is None:
            line.woken_s = now_s
        if self._leaving:
            return refusals.leaving(line, now_s)
        bounds = self._bounds
        own = line.held >= bounds.requests_per_service
        if own or not self._requests.fits(namespace_of(key), 1):
            return refusals.too_many(line, now_s, "requests")
        within_s = line.served.timeout_s if timeout_s is None else timeout_s
        within_s = min(within_s, line.served.timeout_s, bounds.longest_s)
        known = line.served.cold_start_s is not None
        if known and line.warm_in_s(now_s) > within_s:
            return refusals.too_late(line, now_s, within_s)
        before_s = min(ANSWERED_BEFORE_S, 0.2 * within_s)
        held = HeldRequest(
            key=key,
            number=next(self._numbers),
            arrived_s=now_s,
            until_s=now_s + within_s - before_s,
            not_before_s=math.inf,  # until its body has arrived
        )
        line.waiting.add(held)
        self._requests.take(namespace_of(key), 1)
        return held

    def grow(self, held: HeldRequest, size: int, now_s: float) -> Refusal | None:
        """Add bytes to a request; return the refusal if they exceed a bound, or it was refused."""
        if held.refusal is not None:
            return held.refusal
        line = self._lines[held.key]
        forwarded = 0 if held.at is None else FORWARD_BYTES
        if held.size - forwarded + size > line.served.max_body_bytes + HEAD_BYTES:
            return refusals.too_large(line)
        if not self._bytes.fits(namespace_of(held.key), size):
            return refusals.too_many(line, now_s, "bytes")
        self._count(held, size)
        return None

    def complete(self, held: HeldRequest) -> None:
        """Mark a request as completely received: it may be dispatched."""
        held.not_before_s = 0.0
        line = self._lines.get(held.key)  # None: refused, and its service was removed
        if line is not None:
            line.waiting.may_go(held)

    def dispatch(self, now_s: float, key: str | None = None) -> Dispatch:
        """Assign requests to replicas with free capacity, and refuse expired requests.

        Of one service, or of all: what one leaves of the shared bytes, others get with the next
        dispatch of all.
        """
        of = self._lines.values() if key is None else filter(None, (self._lines.get(key),))
        lines = [line for line in of if line.waiting]
        refused = [one for line in lines for one in self._refused(line, now_s)]
        given = [one for line in lines for one in self._granted(line, now_s)]
        return Dispatch(tuple(given), tuple(refused))

    def put_back(self, held: HeldRequest, now_s: float) -> None:
        """Requeue a request that a replica refused, at its old position; lower that one's limit."""
        line, at = self._lines[held.key], held.at
        if at is not None:
            line.refused_by(at, now_s + AGAIN_AFTER_S)
            held.refused_by |= {at}
            self._count(held, -FORWARD_BYTES)
            self._forwarded[namespace_of(held.key)] -= 1
        held.at, held.not_before_s = None, now_s + AGAIN_AFTER_S
        line.waiting.add(held)
        line.waiting.may_go(held)

    def answered(self, held: HeldRequest) -> None:
        """Raise the limit of a replica that answered by one."""
        if held.at is not None:
            self._lines[held.key].answered_by(held.at)

    def done(self, held: HeldRequest) -> None:
        """Release a request that has ended, whatever the outcome."""
        line = self._lines.get(held.key)  # None: refused, and its service was removed
        if line is not None and held.at is not None:
            line.release(held.at)
        elif line is not None:
            line.waiting.remove(held)
        if held.at is not None:
            self._forwarded[namespace_of(held.key)] -= 1
        held.at = None
        self._requests.give_back(namespace_of(held.key), 1)
        self._bytes.give_back(namespace_of(held.key), held.size)
        held.size = 0

    def held(self) -> dict[str, int]:
        """Return the held requests by service; services without any are left out."""
        return {key: line.held for key, line in self._lines.items() if line.held}

    @property
    def requests(self) -> int:
        """Number of held requests of all services."""
        return self._requests.held

    @property
    def body_bytes(self) -> int:
        """Bytes of all held requests."""
        return self._bytes.held

    def _refused(self, line: ServiceQueue, now_s: float) -> Iterator[tuple[HeldRequest, Refusal]]:
        ends = self._leaving or not line.known
        for held in line.waiting.ended(math.inf if ends else now_s):
            held.refusal = refusal = self._end(line, now_s)
            yield held, refusal

    def _end(self, line: ServiceQueue, now_s: float) -> Refusal:
        """Return why a request may wait no longer."""
        if self._leaving:
            return refusals.leaving(line, now_s)
        if not line.known:
            return refusals.unknown(line.served.key)
        return refusals.expired(line, now_s)

    def _granted(self, line: ServiceQueue, now_s: float) -> Iterator[tuple[HeldRequest, Endpoint]]:
        """Dispatch requests while the replicas, and the bytes of the namespace, have room."""
        namespace = namespace_of(line.served.key)
        while line.free(now_s) is not None and (held := line.waiting.first(now_s)) is not None:
            if not self._bytes.fits(namespace, FORWARD_BYTES) and self._forwarded[namespace]:
                break  # at least one at a time goes on, or the bodies would wait for themselves
            line.waiting.remove(held)
            host = line.free(now_s, held.refused_by)
            assert host is not None
            held.at = host
            line.take(host)
            self._count(held, FORWARD_BYTES)
            self._forwarded[namespace] += 1
            yield held, host

    def _count(self, held: HeldRequest, size: int) -> None:
        held.size += size
        if size < 0:
            self._bytes.give_back(namespace_of(held.key), -size)
        else:
            self._bytes.take(namespace_of(held.key), size)
