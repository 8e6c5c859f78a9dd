"""Paces the changes that gateways receive, and bounds each namespace's share of them. Pure.

To publish one changed service takes 10 to 130 ms of the event loop, and a gateway keeps
the earlier version for as long as it drains (20 s): a service that is changed twenty times a second
would have all of the loop, and all services' replicas would be known seconds late. So what changes
within those seconds is bounded in sum, and a namespace changes as much as is free. A service that
exceeds it stays as it was, and follows later. Its replicas always follow at once.

What is here when an operator begins to lead is no change: the gateways have it.

A configuration is built to know its size, and kept where it is published. A namespace whose next
service has no room, or no turn, is built no further: a thousand of the largest take 10 s and
200 MB.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headroom.controller.routing.gateway_room import (
    MOST_BYTES,
    NAMESPACE_BYTES,
    GatewayRoom,
    Lacking,
)
from headroom.fair_share import FairShare
from headroom.gateway import Route
from headroom.gateway.built_routes import BuiltRoute

APART_S = 1.0
"""Least time between two published versions of a service."""
REMEMBERED_S = 20.0
"""Time for which a gateway keeps an earlier version (`--drain-time-s`)."""
CHANGED_BYTES = 4 << 20
"""Configurations that change in that time: 12 kB of a usual service, 210 kB of the largest. In
sum 12 % of the event loop, and 50 MB of a gateway, where each byte takes twelve."""
LEFT_OUT = (
    "the services of the namespace have all of the gateways' configuration that one namespace may "
    f"have (as much as is free of {MOST_BYTES >> 20} MiB, at least an equal share, and at most "
    f"{NAMESPACE_BYTES >> 20})"
)


class PublishedRoutes(NamedTuple):
    """Presently published routes."""

    built: Sequence[BuiltRoute]
    late: Collection[str]
    """Keys of routes that are published later for the first time: gateways keep what they have."""
    left_out: Mapping[str, str]
    """Reason why a route is not published as it is, by key: not before another one is smaller."""
    direct: Collection[str]
    """Keys of routes whose clients are led to the replicas: left out, or about to be."""

    @property
    def routes(self) -> Sequence[Route]:
        """Return the published routes, without their built resources."""
        return [one.route for one in self.built]


class _Published(NamedTuple):
    built: BuiltRoute
    size: int
    at_s: float


class _Sized(NamedTuple):
    """A route that was built and not published."""

    route: Route
    size: int


@dataclass(slots=True)
class _Round:
    """Findings of one round over all routes."""

    stopped: dict[str, bool] = field(default_factory=dict)
    """Namespaces with no room (True) or no turn for a further service, of which none is built."""
    lacking: dict[str, Lacking] = field(default_factory=dict)
    """Missing room and the services without it, by namespace."""
    left_out: list[str] = field(default_factory=list)
    sized: dict[str, _Sized] = field(default_factory=dict)
    """Sizes by key, so that a route is not built each time to know its size."""

    def lacks(self, route: Route, more: int = 0) -> None:
        """Note that a route is not published as it is."""
        size, services = self.lacking.get(route.namespace, Lacking(more, 0))
        self.lacking[route.namespace] = Lacking(size, services + 1)


@dataclass(frozen=True, slots=True)
class _Change:
    at_s: float
    namespace: str
    size: int


@dataclass(slots=True)
class PacedRoutes:
    """The routes as they were published."""

    build: Callable[[Route], BuiltRoute]
    _published: dict[str, _Published] = field(default_factory=dict)
    _room: GatewayRoom = field(default_factory=GatewayRoom)
    _changes: deque[_Change] = field(default_factory=deque)
    _share: FairShare = field(default_factory=lambda: FairShare(CHANGED_BYTES))
    _round: _Round = field(default_factory=_Round)
    """The last one."""
    _begun: bool = False

    def publish(
        self,
        routes: Iterable[Route],
        kept: Callable[[str], bool],
        now_s: float,
        in_use: Collection[str] = (),
    ) -> PublishedRoutes:
        """Return the routes to publish; `kept` are other keys that stay as they are.

        Clients may still be led to the gateways for the keys `in_use`: these are taken over first.
        """
        while self._changes and not 0.0 <= now_s - self._changes[0].at_s < REMEMBERED_S:
            past = self._changes.popleft()
            self._share.give_back(past.namespace, past.size)
        wanted = {route.key: route for route in routes}
        for key in [key for key in self._published if key not in wanted and not kept(key)]:
            self._forget(key)
        held = (one.built.route for one in self._published.values())
        self._room.divide(len({one.namespace for one in (*wanted.values(), *held)}))
        for key in self._room.has_given_way(now_s, in_use):
            self._forget(key)
        before, self._round = self._round, _Round()
        for route in sorted(wanted.values(), key=lambda one: one.key not in in_use):
            if route.key not in self._room.leaving:
                self._follow(route, now_s, before.sized.get(route.key), in_use)
        self._room.give_way(self._round.lacking, now_s)
        self._begun = True
        leaving = self._room.leaving
        left_out = dict.fromkeys((*self._round.left_out, *leaving), LEFT_OUT)
        out = [key for key in wanted if key not in self._published]
        return PublishedRoutes(
            built=[self._published[key].built for key in wanted if key in self._published],
            late=[key for key in out if key not in left_out],
            left_out=left_out,
            direct={*(key for key in out if key in left_out), *leaving},
        )

    def _follow(
        self, route: Route, now_s: float, sized: _Sized | None, in_use: Collection[str]
    ) -> None:
        """Take a route over, now or in a later round."""
        key, namespace, found = route.key, route.namespace, self._round
        known = self._published.get(key)
        if known is None and namespace in found.stopped:
            found.lacks(route)
            if found.stopped[namespace]:
                found.left_out.append(key)
            return
        if known and (known.built.route == route or not self._may_change(known, now_s)):
            return
        if sized is None or sized.route != route:
            built = self.build(route)
            sized = _Sized(route, built.size)
        else:
            built = None
        more = sized.size - (0 if known is None else known.size)
        has_room = self._room.fits if self._begun or key not in in_use else self._room.fits_at_all
        is_full = more > 0 and not has_room(namespace, more)
        if not is_full and (not self._begun or self._share.fits(namespace, sized.size)):
            self._take(built or self.build(route), now_s)
            return
        found.sized[key] = sized
        if is_full:
            found.left_out.append(key)
        if more > 0:
            found.lacks(route, more)
        if known is None:
            found.stopped[namespace] = is_full

    def _may_change(self, known: _Published, now_s: float) -> bool:
        """Return whether a further version of a service may be built now."""
        soon = 0.0 <= now_s - known.at_s < APART_S
        return not soon and self._share.fits(known.built.route.namespace, known.size)

    def _take(self, built: BuiltRoute, now_s: float) -> None:
        """Publish a route, or a new version of it."""
        key, namespace, size = built.route.key, built.route.namespace, built.size
        if self._begun:
            self._share.take(namespace, size)
            self._changes.append(_Change(now_s, namespace, size))
        self._published[key] = _Published(built, size, now_s)
        self._room.take(key, namespace, size)

    def _forget(self, key: str) -> None:
        del self._published[key]
        self._room.give_back(key)
