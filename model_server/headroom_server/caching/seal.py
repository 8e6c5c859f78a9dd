"""Seals values that are kept outside this process: they can be neither guessed nor replaced. Pure.

A name is a keyed digest, so that a reader of the store cannot try inputs. A sealed value is:

    32 bytes   keyed digest of name and rest
    8 bytes    end of its life, milliseconds since the epoch, little-endian
    rest       the value

Without the secret a writer can make none, move none to another name, and lengthen no life.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from struct import Struct
from typing import NamedTuple

SECRET_CHARACTERS = 32
"""Fewest of a secret: 128 bits, even where each is one of sixteen."""
DIGEST_BYTES = 32
_END = Struct("<q")
_HEAD_BYTES = DIGEST_BYTES + _END.size


class Opened(NamedTuple):
    """A value whose seal is right, and the end of its life."""

    value: bytes
    until_s: float


class Seal:
    """Seals and opens with one secret."""

    def __init__(self, secret: str) -> None:
        """Raise ValueError for a secret that is too short."""
        if len(secret) < SECRET_CHARACTERS:
            raise ValueError(
                f"must have at least {SECRET_CHARACTERS} characters; got {len(secret)}"
            )
        # BLAKE2b takes keys of up to 64 bytes.
        self._key = blake2b(secret.encode()).digest()

    def name(self, key: bytes) -> bytes:
        """Return the name under which the value of a key is stored."""
        return self._digest(b"name", key)

    def sealed(self, name: bytes, value: bytes, until_s: float) -> bytes:
        """Seal a value for a name until a time, seconds since the epoch."""
        rest = _END.pack(round(until_s * 1000)) + value
        return self._digest(b"value", name + rest) + rest

    def opened(self, name: bytes, sealed: bytes) -> Opened | None:
        """Open a sealed value; None if it was not sealed for this name with this secret."""
        rest = sealed[DIGEST_BYTES:]
        right = self._digest(b"value", name + rest)
        if len(sealed) < _HEAD_BYTES or not compare_digest(sealed[:DIGEST_BYTES], right):
            return None
        (until_ms,) = _END.unpack_from(rest)
        return Opened(rest[_END.size :], until_ms / 1000)

    def _digest(self, purpose: bytes, content: bytes) -> bytes:
        return blake2b(content, digest_size=DIGEST_BYTES, key=self._key, person=purpose).digest()
