"""PURE. Where in a shared memory of fixed size there is room: first fit, as a value."""

from __future__ import annotations

from typing import NamedTuple

GRAIN_BYTES = 64
"""Blocks are whole cache lines."""


class Arena(NamedTuple):
    """What is free: holes as (begin, end), ascending, never touching each other."""

    holes: tuple[tuple[int, int], ...]

    @staticmethod
    def of(size: int) -> Arena:
        """All of it free."""
        return Arena(((0, size),))

    def take(self, size: int) -> tuple[Arena, int] | None:
        """What is left, and where the block begins; None where no hole is large enough."""
        grains = rounded(size)
        for index, (begin, end) in enumerate(self.holes):
            if end - begin >= grains:
                rest = ((begin + grains, end),) if end - begin > grains else ()
                return Arena(self.holes[:index] + rest + self.holes[index + 1 :]), begin
        return None

    def give(self, begin: int, size: int) -> Arena:
        """With a block that was taken free again."""
        end = begin + rounded(size)
        before = [hole for hole in self.holes if hole[1] <= begin]
        after = [hole for hole in self.holes if hole[0] >= end]
        if len(before) + len(after) != len(self.holes):
            raise ValueError(f"a block that was taken; {begin} to {end} is partly free")
        if before and before[-1][1] == begin:
            begin = before.pop()[0]
        if after and after[0][0] == end:
            end = after.pop(0)[1]
        return Arena((*before, (begin, end), *after))


def rounded(size: int) -> int:
    """Bytes that a block of this size takes; an empty one takes a grain too."""
    return max(1, -(-size // GRAIN_BYTES)) * GRAIN_BYTES
