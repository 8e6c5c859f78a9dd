"""What one gateway knows, kind by kind, and what it therefore lacks. Pure.

The protocol is Envoy's incremental discovery: a gateway says once which versions it has, and from
then on is told what has become another and what is gone, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

EVERYTHING = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a gateway asks in one message; also how it confirms, or refuses, what it was told."""

    kind: str
    subscribed: tuple[str, ...] = ()
    unsubscribed: tuple[str, ...] = ()
    has: Mapping[str, str] = field(default_factory=dict)
    """Versions by name, at the beginning of a stream."""
    refused: str = ""
    """Why what it was told cannot be; it keeps what it had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacks:
    """What a gateway is to be told of one kind."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.changed or self.removed)


@dataclass(slots=True)
class _OfKind:
    versions: dict[str, str]
    names: set[str]
    """That it asked for; with `EVERYTHING` among them all that there are."""


class Knowledge:
    """What one gateway knows, from the beginning of its stream."""

    def __init__(self) -> None:
        self._kinds: dict[str, _OfKind] = {}

    def hear(self, question: Question) -> None:
        """Take in what the gateway asks for.

        What is asked for by name a second time is told a second time: its cluster was built anew.
        """
        known = self._kinds.get(question.kind)
        if known is None:
            names = set(question.subscribed) or {EVERYTHING}
            self._kinds[question.kind] = _OfKind(dict(question.has), names)
            return
        for name in question.subscribed:
            known.names.add(name)
            known.versions.pop(name, None)
        for name in question.unsubscribed:
            known.names.discard(name)
            known.versions.pop(name, None)

    def lacks(self, kind: str, versions: Mapping[str, str]) -> Lacks:
        """Say what is to be told, where these are the versions that stand."""
        known = self._kinds.get(kind)
        if known is None:
            return Lacks(changed=(), removed=())
        wanted: Iterable[str] = versions if EVERYTHING in known.names else known.names
        return Lacks(
            changed=tuple(
                name
                for name in sorted(wanted)
                if name in versions and known.versions.get(name) != versions[name]
            ),
            removed=tuple(sorted(name for name in known.versions if name not in versions)),
        )

    def told(self, kind: str, changed: Mapping[str, str], removed: Iterable[str]) -> None:
        """Take for known what was just told; what is refused is not said again until it changes."""
        versions = self._kinds[kind].versions
        versions.update(changed)
        for name in removed:
            versions.pop(name, None)

    def forget(self, kind: str, names: Iterable[str]) -> None:
        """Have these told anew."""
        if kind in self._kinds:
            for name in names:
                self._kinds[kind].versions.pop(name, None)
