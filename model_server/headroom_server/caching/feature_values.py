"""Keys and values of cached features: numbers that are computed from a text alone. Pure.

    16 bytes   digest of key and payload
    payload    the numbers, four bytes each

Tenants share none: response times would show what others asked.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from enum import StrEnum
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

FORMAT = "headroom feature 1"
KEY_BYTES = 32
DIGEST_BYTES = 16
ENTRY_BYTES = 768
"""Memory of a feature in addition to its numbers."""
MAX_VALUE_BYTES = 256 * 1024
"""Larger features are not kept: copying one takes more than a millisecond of the event loop."""

Numbers: TypeAlias = "array[Any]"


class FeatureKind(StrEnum):
    """Kind of a computed feature."""

    EMBEDDING = "embedding"
    TOKENS = "tokens"


TYPE_CODES = {FeatureKind.EMBEDDING: "f", FeatureKind.TOKENS: "I"}


class FeatureInput(NamedTuple):
    """Input of a feature, its model, and its tenant."""

    kind: FeatureKind
    identity: str
    """Distinguishes the model that computes it, and its options, from all others."""
    tenant: str
    text: str


def key_of(feature_input: FeatureInput) -> bytes:
    """Return the key of a feature."""
    owner = repr(
        (
            FORMAT,
            sys.byteorder,
            str(feature_input.kind),
            feature_input.identity,
            feature_input.tenant,
        )
    )
    digest = blake2b(owner.encode(), digest_size=KEY_BYTES)
    digest.update(feature_input.text.encode("utf-8", "surrogatepass"))
    return digest.digest()


def numbers_of(kind: FeatureKind, values: Iterable[float]) -> Numbers:
    """Return numbers as they are kept."""
    return array(TYPE_CODES[kind], values)


def size_of(numbers: Numbers) -> int:
    """Return the bytes that a feature holds in memory."""
    return ENTRY_BYTES + len(numbers) * numbers.itemsize


def encoded(key: bytes, numbers: Numbers) -> bytes:
    """Encode the value of a key for a store."""
    payload = numbers.tobytes()
    return _digest(key, payload) + payload


def decoded(key: bytes, kind: FeatureKind, value: bytes) -> Numbers | None:
    """Decode a value; None if it does not belong to this key."""
    payload = value[DIGEST_BYTES:]
    if value[:DIGEST_BYTES] != _digest(key, payload):
        return None
    numbers: Numbers = array(TYPE_CODES[kind])
    numbers.frombytes(payload)
    return numbers


def _digest(key: bytes, payload: bytes) -> bytes:
    return blake2b(payload, digest_size=DIGEST_BYTES, key=key).digest()
