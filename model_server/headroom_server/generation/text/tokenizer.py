"""The port of tokenizers, and one of plain bytes for emulated models."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Protocol

from headroom_server.generation.text.special_names import SpecialNames


class Detokenizer(Protocol):
    """Turns the tokens of one answer into text, piece by piece.

    The pieces together are the text of all tokens decoded at once; no piece ends within a
    character.
    """

    def push(self, tokens: Sequence[int]) -> str:
        """Return the text that these tokens complete; "" while a character is incomplete."""

    def flush(self) -> str:
        """Return the rest at the end: U+FFFD for incomplete characters."""


class Tokenizer(Protocol):
    """A tokenizer of one model."""

    eos_tokens: frozenset[int]
    """Tokens that end an answer."""
    special_names: SpecialNames
    """Names that `encode` makes special tokens of, wherever they stand."""

    def encode(self, text: str, *, special: bool) -> Sequence[int]:
        """Return a text's tokens; `special`: with those that begin a sequence (BOS)."""

    def detokenizer(self) -> Detokenizer:
        """Return a new detokenizer, which omits special tokens."""

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of one token alone, for reports of probabilities."""

    def token_name(self, token: int) -> str:
        """Return a token as the vocabulary writes it; "" for a token that it does not have."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, with the names of special ones."""


class TokenBytes(dict[int, bytes]):
    """The bytes of each token; b"" for special and unknown ones.

    A model's vocabulary may be padded beyond its tokenizer's.
    """

    def __missing__(self, token: int) -> bytes:
        """Return the bytes of a token that the tokenizer does not have."""
        return b""


_Decoder = codecs.getincrementaldecoder("utf-8")


class ByteDetokenizer:
    """Detokenizer for tokens that are sequences of bytes (byte-level BPE): exact and fast.

    Invalid UTF-8 becomes one U+FFFD per maximal subpart (Unicode 15.0, section 3.9), as in Rust's
    `from_utf8_lossy` that the library uses for whole texts.
    """

    __slots__ = ("_bytes", "_decode")

    def __init__(self, token_bytes: Mapping[int, bytes]) -> None:
        self._bytes = token_bytes
        self._decode = _Decoder("replace").decode

    def push(self, tokens: Sequence[int]) -> str:
        """Return the text that these tokens complete."""
        table = self._bytes
        return self._decode(b"".join([table[token] for token in tokens]))

    def flush(self) -> str:
        """Return U+FFFD if the last character is incomplete."""
        return self._decode(b"", True)


BYTE_TOKENS = 256
BYTE_BOS, BYTE_EOS = 256, 257
BYTE_NAMES = {BYTE_BOS: "<bos>", BYTE_EOS: "<eos>"}


class ByteTokenizer:
    """One token per byte, then BOS and EOS: a vocabulary of 258, without a file or a library."""

    def __init__(self) -> None:
        self.eos_tokens = frozenset({BYTE_EOS})
        self.special_names = SpecialNames(())
        self._bytes = TokenBytes({value: bytes((value,)) for value in range(BYTE_TOKENS)})

    def encode(self, text: str, *, special: bool) -> Sequence[int]:
        """Return the bytes of a text."""
        encoded = list(text.encode("utf-8", "replace"))
        return [BYTE_BOS, *encoded] if special else encoded

    def detokenizer(self) -> Detokenizer:
        """Return a new detokenizer."""
        return ByteDetokenizer(self._bytes)

    def token_bytes(self, token: int) -> bytes:
        """Return the byte of a token."""
        return self._bytes[token]

    def token_name(self, token: int) -> str:
        """Return a printable character of ASCII as it is, other bytes as `<0x..>`."""
        if token in BYTE_NAMES:
            return BYTE_NAMES[token]
        if token >= BYTE_TOKENS:
            return ""
        return chr(token) if 0x20 < token < 0x7F else f"<0x{token:02X}>"

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        pieces = [BYTE_NAMES.get(one, "").encode() or self._bytes[one] for one in tokens]
        return b"".join(pieces).decode("utf-8", "replace")
