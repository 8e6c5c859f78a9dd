"""How fast gateways follow the services of a namespace, and how much of them these take. Pure.

To publish one changed service takes 10 to 130 ms of the event loop, and a gateway keeps
the earlier version for as long as it drains (20 s): a service that is changed twenty times a second
would have all of the loop, and all services' replicas would be known seconds late. So what changes
within those seconds is bounded in sum, and a namespace changes as much as is free. A service that
exceeds it stays as it was, and follows later. Its replicas always follow at once.

What is here when an operator begins to lead is no change: the gateways have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headroom.fair_share import FairShare
from headroom.gateway import Route

APART_S = 1.0
"""Least time between two published versions of a service."""
REMEMBERED_S = 20.0
"""As long as a gateway keeps an earlier version (`--drain-time-s`)."""
CHANGED_BYTES = 4 << 20
"""Configurations that change in that time: 12 kB of a usual service, 210 kB of the largest. In
sum 12 % of the event loop, and 50 MB of a gateway, where each byte takes twelve."""
NAMESPACE_BYTES = 16 << 20
"""Configurations of all services of a namespace: 1000 usual ones, or 80 of the largest, which take
200 MB of a gateway."""

MOST_BYTES = 32 << 20
"""All namespaces together: 400 MB of a gateway's 3 GiB. Each has at most as much as is free."""

LEFT_OUT = (
    "the services of the namespace have all of the gateways' configuration that one namespace may "
    f"have (as much as is free of {MOST_BYTES >> 20} MiB, and at most {NAMESPACE_BYTES >> 20})"
)


class PublishedRoutes(NamedTuple):
    """What is published now."""

    routes: Sequence[Route]
    late: Collection[str]
    """Keys of routes that are published later for the first time: gateways keep what they have."""
    left_out: Mapping[str, str]
    """Why a route is not published as it is, by key: not before another one is smaller."""


@dataclass(frozen=True, slots=True)
class _Published:
    route: Route
    size: int
    at_s: float


@dataclass(frozen=True, slots=True)
class _Change:
    at_s: float
    namespace: str
    size: int


@dataclass(slots=True)
class PacedRoutes:
    """The routes as they were published; `size_of` returns the bytes of a configuration."""

    size_of: Callable[[Route], int]
    _published: dict[str, _Published] = field(default_factory=dict)
    _room: FairShare = field(default_factory=lambda: FairShare(MOST_BYTES))
    """The bytes of all published routes, by namespace."""
    _changes: deque[_Change] = field(default_factory=deque)
    _share: FairShare = field(default_factory=lambda: FairShare(CHANGED_BYTES))
    _begun: bool = False

    def publish(
        self, routes: Iterable[Route], kept: Callable[[str], bool], now_s: float
    ) -> PublishedRoutes:
        """Return what to publish; `kept` says which other keys stay as they are."""
        while self._changes and not 0.0 <= now_s - self._changes[0].at_s < REMEMBERED_S:
            past = self._changes.popleft()
            self._share.give_back(past.namespace, past.size)
        wanted = {route.key: route for route in routes}
        for key in [key for key in self._published if key not in wanted and not kept(key)]:
            self._forget(key)
        left_out = {
            route.key: LEFT_OUT for route in wanted.values() if not self._follow(route, now_s)
        }
        self._begun = True
        return PublishedRoutes(
            routes=[self._published[key].route for key in wanted if key in self._published],
            late=[key for key in wanted if key not in self._published and key not in left_out],
            left_out=left_out,
        )

    def _follow(self, route: Route, now_s: float) -> bool:
        """Take a route over now or later; return whether its namespace has room for it."""
        known = self._published.get(route.key)
        if known is not None:
            if known.route == route:
                return True
            soon = 0.0 <= now_s - known.at_s < APART_S
            if soon or not self._share.fits(route.namespace, known.size):
                return True  # later; the new one is not even built
        namespace, size = route.namespace, self.size_of(route)
        before = 0 if known is None else known.size
        if size > before and not self._has_room(namespace, size - before):
            return False
        if self._begun:
            if not self._share.fits(namespace, size):
                return True
            self._share.take(namespace, size)
            self._changes.append(_Change(now_s, namespace, size))
        self._forget(route.key)
        self._published[route.key] = _Published(route, size, now_s)
        self._room.take(namespace, size)
        return True

    def _has_room(self, namespace: str, more: int) -> bool:
        """Return whether a namespace may have this many bytes more."""
        fits = self._room.held_by(namespace) + more <= NAMESPACE_BYTES
        return fits and self._room.fits(namespace, more)

    def _forget(self, key: str) -> None:
        known = self._published.pop(key, None)
        if known is not None:
            self._room.give_back(known.route.namespace, known.size)
