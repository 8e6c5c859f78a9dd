"""Prompt lookup: propose what followed the last tokens when they occurred before. Pure.

Saxena, "Prompt Lookup Decoding" (2023). Summaries, edits and code repeat their input, so the guess
is often right, and it costs no model. The index maps `GRAM` tokens to where they were last
followed; it grows with the sequence, a token at a time.
"""

from __future__ import annotations

GRAM = 3


class LookupIndex:
    """Last position of each run of `GRAM` tokens that another token followed, in one sequence."""

    __slots__ = ("_following", "_seen")

    def __init__(self) -> None:
        self._following: dict[tuple[int, ...], int] = {}
        self._seen = GRAM

    def propose(self, tokens: list[int], count: int) -> tuple[int, ...]:
        """Return up to `count` tokens that may follow; none if the last ones are new."""
        following = self._following
        for at in range(self._seen, len(tokens)):
            following[tuple(tokens[at - GRAM : at])] = at
        self._seen = max(GRAM, len(tokens))
        at = following.get(tuple(tokens[-GRAM:]), 0)
        return tuple(tokens[at : at + count]) if at else ()
