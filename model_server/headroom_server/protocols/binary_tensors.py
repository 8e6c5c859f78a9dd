"""Tensors as bytes: row-major, little-endian, no padding between elements. Pure.

The binary data extension and the raw contents of gRPC use this form, and so do the arrays that
store a request's numbers: data is only copied and checked. Each element of BYTES follows its
length, 4 bytes.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from itertools import islice

from headroom_server.datatypes import DATATYPES, ends
from headroom_server.errors import InvalidRequestError
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers

FEW = 64
"""Below this many elements, a sum is the cheapest test for NaN."""

TOPS = {"FP16": bytes((*range(0x7C, 0x80), *range(0xFC, 0x100)))} | dict.fromkeys(
    ("BF16", "FP32", "FP64"), b"\x7f\xff"
)
"""The most significant bytes of NaN and infinity."""


def span(spec: TensorSpec, raw: bytes, at: int, elements: int) -> int:
    """Return the bytes of this many elements from `at` on; all the rest if BYTES are truncated."""
    if not spec.is_strings:
        return elements * DATATYPES[spec.datatype].width
    try:
        last = deque(islice(ends(raw, at), elements), maxlen=1)
    except ValueError:
        return len(raw) - at
    return last[0] - at if last else 0


def from_bytes(spec: TensorSpec, raw: bytes, elements: int, where: str) -> Numbers:
    """Return the elements of a tensor.

    Raises:
        InvalidRequestError: wrong number of bytes or elements; NaN or infinity; a BOOL that is
            neither 0 nor 1.
    """
    if spec.is_strings:
        return _strings(raw, elements, where)
    numbers: Numbers = array(DATATYPES[spec.datatype].typecode)
    wanted = elements * numbers.itemsize
    if len(raw) != wanted:
        raise InvalidRequestError(
            f"{where} must have {wanted} bytes, {elements} elements of {spec.datatype}; got "
            f"{len(raw)}"
        )
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    if spec.datatype in TOPS and not _all_finite(spec.datatype, numbers, raw):
        raise InvalidRequestError(
            f"{where} must have finite values ({spec.datatype}); one is not finite"
        )
    if spec.datatype == "BOOL" and raw.translate(None, b"\0\1"):
        raise InvalidRequestError(f"{where}: each BOOL must be one byte, 0 or 1; one is neither")
    return numbers


def to_bytes(numbers: Numbers) -> bytes:
    """Return the bytes; the inverse of from_bytes."""
    if sys.byteorder == "big" and numbers.itemsize > 1:
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _strings(raw: bytes, elements: int, where: str) -> Numbers:
    count = 0
    try:
        # one more than expected is enough: 4 bytes may be the length of an element
        count = sum(1 for _ in islice(ends(raw), elements + 1))
    except ValueError as error:
        raise InvalidRequestError(
            f"{where} must be BYTES, each after its length: {error}"
        ) from error
    if count != elements:
        got = count if count < elements else "more"
        raise InvalidRequestError(f"{where} must have {elements} elements of BYTES; got {got}")
    return array("B", raw)


def _all_finite(datatype: str, numbers: Numbers, raw: bytes) -> bool:
    # NaN and infinity have one of few most significant bytes, which hardly any other number has. If
    # no element has one of them, checking one byte per element is ten times cheaper.
    if len(numbers) >= FEW:
        top = raw[numbers.itemsize - 1 :: numbers.itemsize]
        if len(top.translate(None, TOPS[datatype])) == len(top):
            return True
    return DATATYPES[datatype].finite(numbers)
