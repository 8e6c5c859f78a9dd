"""Holds the parts of an answer that its client does not read yet. Pure."""

from __future__ import annotations

from typing import NamedTuple

from headroom_server.openai_api.answers.encoding import Part, merged
from headroom_server.openai_api.answers.unread import (
    MOST_PARTS,
    PART_BYTES,
    held_bytes,
    probabilities_of,
)


class _Held(NamedTuple):
    part: Part
    size: int


class HeldParts:
    """Text becomes one string, so that it costs its size; probabilities stay as they came."""

    def __init__(self, choices: int) -> None:
        self._held: list[list[_Held]] = [[] for _ in range(choices)]
        self._named = [False] * choices
        """Whether a choice has had probabilities."""
        self._counted = [0] * choices
        """Parts of each choice that count as objects, not only as text."""
        self.size = 0
        """Their memory in bytes."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return any(self._held)

    def add(self, index: int, part: Part) -> int:
        """Add a part of a choice; return the bytes that it takes."""
        held, size = self._held[index], held_bytes(part)
        self._named[index] |= bool(part.tokens)
        if self._named[index] or self._counted[index] < MOST_PARTS:
            self._counted[index] += 1
            size += PART_BYTES
        held.append(_Held(part, size))
        self.size += size
        if len(held) >= MOST_PARTS and not self._named[index]:
            whole = merged([one.part for one in held])
            self._held[index] = [_Held(whole, sum(one.size for one in held))]
        return size

    def take(self, most: float) -> list[tuple[int, Part]]:
        """Take the oldest parts, merged by choice, and leave the others.

        All parts together have at most this many probabilities, unless the first one alone has
        more.
        """
        taken: list[tuple[int, Part]] = []
        room = most
        for index, held in enumerate(self._held):
            parts: list[Part] = []
            for part, size in held:
                probabilities = probabilities_of(part)
                if probabilities > room and (parts or taken):
                    break
                room -= probabilities
                self.size -= size
                parts.append(part)
            if parts:
                del held[: len(parts)]
                taken.append((index, merged(parts)))
            if not held:
                self._counted[index] = 0
        return taken
