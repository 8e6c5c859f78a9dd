"""An answer of at least this many tokens: the tokens that end it are forbidden before. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from headroom_server.generation.token_grammar import TokenGrammar


class MinimumLength:
    """A grammar that forbids stop tokens at first; then the inner one alone, if there is one."""

    def __init__(
        self,
        tokens: int,
        stop_tokens: Iterable[int],
        vocabulary: int,
        inner: TokenGrammar | None = None,
    ) -> None:
        self._left = tokens
        self._inner = inner
        words = -(-vocabulary // 32)
        self._all = memoryview(b"\xff" * (4 * words))
        first = bytearray(self._all)
        for token in stop_tokens:
            if token < vocabulary:
                first[token // 8] &= ~(1 << token % 8) & 0xFF
        self._first = bytes(first)

    def allowed(self) -> memoryview:
        """Return the mask of the next token."""
        mask = self._all if self._inner is None else self._inner.allowed()
        if self._left <= 0:
            return mask
        both = int.from_bytes(mask, "little") & int.from_bytes(self._first, "little")
        # a grammar that is complete allows only the end: then the answer ends early
        return memoryview(both.to_bytes(len(mask), "little")) if both else mask

    def accept(self, token: int) -> bool:
        """Advance by one token."""
        self._left -= 1
        return self._inner is None or self._inner.accept(token)

    @property
    def finished(self) -> bool:
        """Whether nothing but the end may follow."""
        return self._inner is not None and self._inner.finished
