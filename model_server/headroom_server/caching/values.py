"""Tensors computed from a request as bytes for an external store, and their size. Pure.

    16 bytes   digest of key and payload
    payload    the tensors' numbers, in the declared order, little-endian

Shapes follow from the request. A truncated value, or one of another request or format, has a
different digest and is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.protocols.binary_tensors import from_bytes, span, to_bytes
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers

DIGEST_BYTES = 16
ENTRY_BYTES = 768
"""Memory of a cached answer in addition to its tensors: key, mapping, tuple, LRU links."""
TENSOR_BYTES = 128
"""Memory of a tensor in addition to its numbers."""


def encoded(key: bytes, outputs: Mapping[str, Numbers], specs: Sequence[TensorSpec]) -> bytes:
    """Encode the value of a key."""
    payload = b"".join([to_bytes(outputs[spec.name]) for spec in specs])
    return _digest(key, payload) + payload


def decoded(
    key: bytes, value: bytes, work: Work, specs: Sequence[TensorSpec]
) -> dict[str, Numbers] | None:
    """Decode the tensors; None if the value does not belong to this request."""
    payload = value[DIGEST_BYTES:]
    if value[:DIGEST_BYTES] != _digest(key, payload):
        return None
    outputs, at = {}, 0
    for spec in specs:
        elements = work.items * spec.elements_at(work.length)
        size = span(spec, payload, at, elements)
        try:
            outputs[spec.name] = from_bytes(spec, payload[at : at + size], elements, "a value")
        except InvalidRequestError:
            return None
        at += size
    return outputs if at == len(payload) else None


def size_of(outputs: Mapping[str, Numbers]) -> int:
    """Return the bytes that a cached answer holds in memory."""
    tensors = sum([len(one) * one.itemsize + TENSOR_BYTES for one in outputs.values()])
    return ENTRY_BYTES + tensors


def _digest(key: bytes, payload: bytes) -> bytes:
    return blake2b(payload, digest_size=DIGEST_BYTES, key=key).digest()
