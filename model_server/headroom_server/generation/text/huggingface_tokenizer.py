"""Tokenizers of the `tokenizers` library, and text from tokens as they come."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import orjson
from tokenizers import Tokenizer as LibraryTokenizer

from headroom_server.errors import InvalidRequestError
from headroom_server.generation.text.chat import ChatFormat
from headroom_server.generation.text.library_panics import NOT_SPLIT, panics_raise
from headroom_server.generation.text.normalized_names import NormalizedNames
from headroom_server.generation.text.special_names import SpecialNames
from headroom_server.generation.text.tokenizer import ByteDetokenizer, Detokenizer, TokenBytes
from headroom_server.generation.text.turn_marks import turn_marks

REPLACEMENT = "\ufffd"
MOST_HELD = 3
"""Tokens that may be the beginning of a character, of one byte each."""


class HuggingFaceTokenizer:
    """A tokenizer of the `tokenizers` library."""

    def __init__(
        self,
        library: LibraryTokenizer,
        eos_tokens: Iterable[int],
        chat: ChatFormat | None = None,
    ) -> None:
        """Wrap a tokenizer; `chat`: the format whose marks of turns are special names, too."""
        self.library = library
        self.eos_tokens = frozenset(eos_tokens)
        added = library.get_added_tokens_decoder()
        special = {token: one.content for token, one in added.items() if one.special}
        others = [one.content for one in added.values() if not one.special]
        marks = turn_marks(chat, others) if chat is not None else ()
        self._special = special.keys()
        names = frozenset((*special.values(), *marks))
        normalized = {token: one.content for token, one in added.items() if one.normalized}
        found = {token: name for token, name in normalized.items() if name in names}
        spans = NormalizedNames(library, found).spans if found and library.normalizer else None
        self.special_names = SpecialNames(names, spans)
        self._bytes = _byte_table(library, self._special)

    def encode(self, text: str, *, special: bool) -> Sequence[int]:
        """Return a text's tokens. The library releases the interpreter's lock.

        Raises:
            InvalidRequestError: its pattern takes too long to split this text.
        """
        with panics_raise(InvalidRequestError(NOT_SPLIT)):
            ids: list[int] = self.library.encode(text, add_special_tokens=special).ids
        return ids

    def detokenizer(self) -> Detokenizer:
        """Return a new detokenizer."""
        if self._bytes is not None:
            return ByteDetokenizer(self._bytes)
        return WindowDetokenizer(self.library)

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of one token alone; of a special token, its name."""
        if self._bytes is not None and token not in self._special:
            return self._bytes[token]
        return self.decode([token]).encode()

    def token_name(self, token: int) -> str:
        """Return a token as the vocabulary writes it."""
        return self.library.id_to_token(token) or ""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens. The library releases the interpreter's lock."""
        return str(self.library.decode(list(tokens), skip_special_tokens=False))


class WindowDetokenizer:
    """Detokenizer for any other kind: decodes the last tokens with and without the new ones.

    Decoders look back (a space before a word, runs of byte tokens), so the text of a token depends
    on those before it; a window from the last complete character on is enough. At most
    `MOST_HELD` tokens wait in it: whatever a client makes its model say (bytes that are no
    characters, special tokens), a token costs the same.
    """

    __slots__ = ("_emitted", "_library", "_tokens")

    def __init__(self, library: LibraryTokenizer) -> None:
        self._library = library
        self._tokens: list[int] = []
        self._emitted = 0
        """Tokens of the window whose text has been returned."""

    def push(self, tokens: Sequence[int]) -> str:
        """Return the text that these tokens complete."""
        self._tokens += tokens
        return self._step(final=False)

    def flush(self) -> str:
        """Return the rest, incomplete characters as U+FFFD."""
        return self._step(final=True)

    def _step(self, *, final: bool) -> str:
        tokens, emitted = self._tokens, self._emitted
        before = text = self._decode(tokens[:emitted])
        certain = max(emitted, len(tokens) - MOST_HELD)
        for end in range(len(tokens), certain - 1, -1):
            text = self._decode(tokens[:end])
            if final or len(text) <= len(before) or not text.endswith(REPLACEMENT):
                break
        if len(text) <= len(before):
            del tokens[emitted:certain]  # they have no text
            return ""
        del tokens[:emitted]
        self._emitted = end - emitted
        return text[len(before) :]

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._library.decode(list(tokens), skip_special_tokens=True)) if tokens else ""


def _byte_table(library: LibraryTokenizer, special: Collection[int]) -> TokenBytes | None:
    """Return each token's bytes if the decoder is byte-level, else None."""
    decoder = orjson.loads(library.to_str())["decoder"]
    if decoder is None or decoder["type"] != "ByteLevel":
        return None
    of_character = _byte_of_character()
    table = TokenBytes()
    for text, token in library.get_vocab(with_added_tokens=True).items():
        if token in special:
            continue
        try:
            table[token] = bytes([of_character[character] for character in text])
        except KeyError:  # an added token: its text is not mapped
            table[token] = text.encode()
    return table


def _byte_of_character() -> Mapping[str, int]:
    """Return GPT-2's mapping of printable characters to bytes.

    Source: bytes_to_unicode in https://github.com/openai/gpt-2/blob/master/src/encoder.py.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [value for value in range(256) if value not in set(plain)]
    mapping = {chr(value): value for value in plain}
    return mapping | {chr(256 + number): value for number, value in enumerate(others)}
