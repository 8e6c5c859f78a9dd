"""The port of grammars, which constrain the tokens of one choice. Pure."""

from __future__ import annotations

from typing import Protocol


class TooComplexError(ValueError):
    """Compiling a constraint takes more time or memory than it may."""


class TokenGrammar(Protocol):
    """Set of tokens that may come next. One object per choice; it remembers the accepted tokens."""

    def allowed(self) -> memoryview:
        """Return the mask of the next token: little-endian bits of int32 words, 1 is allowed."""

    def accept(self, token: int) -> bool:
        """Advance by one token; return whether the grammar allowed it."""

    @property
    def finished(self) -> bool:
        """Whether nothing but the end may follow."""
