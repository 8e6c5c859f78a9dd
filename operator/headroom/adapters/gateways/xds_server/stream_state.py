"""The resource versions that one gateway has, by kind, and its missing ones. Pure.

The protocol is Envoy's incremental discovery: a gateway reports its versions once, and then
receives only changed and removed resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

EVERYTHING = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryRequest:
    """One message of a gateway: a subscription, an ACK or a NACK."""

    kind: str
    subscribed: tuple[str, ...] = ()
    unsubscribed: tuple[str, ...] = ()
    has: Mapping[str, str] = field(default_factory=dict)
    """Versions by name, at the start of a stream."""
    refused: str = ""
    """Message of the gateway that rejected an update (NACK); it keeps its previous
    configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The resources of one kind to send to a gateway."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return whether there is anything to send."""
        return bool(self.changed or self.removed)

    def parts(self, at_once: int) -> Iterator[Delta]:
        """Yield deltas of at most this many changes each; removals go with the first."""
        for begin in range(0, max(len(self.changed), 1 if self.removed else 0), at_once):
            yield Delta(
                changed=self.changed[begin : begin + at_once],
                removed=() if begin else self.removed,
            )


@dataclass(slots=True)
class _OfKind:
    versions: dict[str, str]
    names: set[str]
    """Subscribed names; `EVERYTHING` subscribes to all."""


class StreamState:
    """The state of one gateway's stream."""

    def __init__(self) -> None:
        self._kinds: dict[str, _OfKind] = {}

    def on_request(self, request: DiscoveryRequest) -> None:
        """Record a subscription.

        A name that is subscribed again is sent again: the gateway has rebuilt its cluster.
        """
        known = self._kinds.get(request.kind)
        if known is None:
            names = set(request.subscribed) or {EVERYTHING}
            self._kinds[request.kind] = _OfKind(dict(request.has), names)
            return
        for name in request.subscribed:
            known.names.add(name)
            known.versions.pop(name, None)
        for name in request.unsubscribed:
            known.names.discard(name)
            known.versions.pop(name, None)

    def delta(
        self,
        kind: str,
        versions: Mapping[str, str],
        keeps: Callable[[str], bool] = lambda _: False,
        waits: Callable[[str], bool] = lambda _: False,
    ) -> Delta:
        """Return the delta after which the gateway has these versions and those that it `keeps`.

        What `waits` is sent later.
        """
        known = self._kinds.get(kind)
        if known is None:
            return Delta(changed=(), removed=())
        wanted: Iterable[str] = versions if EVERYTHING in known.names else known.names
        return Delta(
            changed=tuple(
                name
                for name in sorted(wanted)
                if name in versions
                and known.versions.get(name) != versions[name]
                and not waits(name)
            ),
            removed=tuple(
                sorted(one for one in known.versions if one not in versions and not keeps(one))
            ),
        )

    def has(self, kind: str, name: str) -> bool:
        """Return whether the gateway has the resource in some version, or it is on its way."""
        known = self._kinds.get(kind)
        return known is not None and name in known.versions

    def mark_sent(self, kind: str, changed: Mapping[str, str], removed: Iterable[str]) -> None:
        """Record sent resources; a rejected one is not sent again until it changes."""
        versions = self._kinds[kind].versions
        versions.update(changed)
        for name in removed:
            versions.pop(name, None)

    def resend(self, kind: str, names: Iterable[str]) -> None:
        """Send these resources again."""
        if kind in self._kinds:
            for name in names:
                self._kinds[kind].versions.pop(name, None)
