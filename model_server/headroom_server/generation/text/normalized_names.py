"""Finds the names of added tokens that match a text only after its normalization.

An added token that is `normalized` is looked for in what the normalizer makes of a text: where it
makes letters small, `<|IM_END|>` is the token `<|im_end|>`; with NFKC, wide bars are bars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer as LibraryTokenizer

from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.library_panics import NOT_SPLIT, panics_raise


class NormalizedNames:
    """The tokens that are looked for in normalized text; the tokenizer has a normalizer."""

    def __init__(self, library: LibraryTokenizer, tokens: Mapping[int, str]) -> None:
        """`tokens`: each with its name."""
        self._library = library
        self._tokens = frozenset(tokens)
        self._names = [self._normal(name) for name in tokens.values()]

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the characters of the text, from and to, of which each name is made.

        Raises:
            InvalidRequestError: the tokenizer's pattern takes too long to split this text.
        """
        normal = self._normal(text)
        if not any(name in normal for name in self._names):
            return ()  # as of almost every text, and ten times as fast
        with panics_raise(InvalidRequestError(NOT_SPLIT)):
            found = self._library.encode(text, add_special_tokens=False)
        return [
            span
            for token, span in zip(found.ids, found.offsets, strict=True)
            if token in self._tokens
        ]

    def _normal(self, text: str) -> str:
        return str(self._library.normalizer.normalize_str(text))
