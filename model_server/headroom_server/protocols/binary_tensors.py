"""PURE. Tensors as bytes: row-major, little-endian, no padding between elements.

This is how the binary data extension and the raw contents of gRPC carry them, and how the arrays
that hold a request's numbers lie in memory: nothing is converted, only copied and checked.
"""

from __future__ import annotations

import math
import sys
from array import array

from headroom_server.errors import InvalidRequestError
from headroom_server.tensors import DATATYPES, Numbers, TensorSpec, finite

FEW = 64
"""Elements below which a sum is the cheapest test for NaN."""


def item_bytes(datatype: str) -> int:
    """Bytes of one element."""
    return array(DATATYPES[datatype].typecode).itemsize


def from_bytes(spec: TensorSpec, raw: bytes, elements: int, where: str) -> Numbers:
    """The numbers of a tensor.

    Raises:
        InvalidRequestError: another number of bytes; NaN or infinity; a BOOL that is neither 0
            nor 1.
    """
    numbers: Numbers = array(DATATYPES[spec.datatype].typecode)
    wanted = elements * numbers.itemsize
    if len(raw) != wanted:
        raise InvalidRequestError(
            f"{where}: {wanted} bytes, {elements} elements of {spec.datatype}; got {len(raw)}"
        )
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    if numbers.typecode in "fd" and not _all_finite(numbers, raw):
        raise InvalidRequestError(f"{where}: {spec.datatype} holds finite values; one is not")
    if spec.datatype == "BOOL" and raw.translate(None, b"\0\1"):
        raise InvalidRequestError(f"{where}: each BOOL is one byte, 0 or 1; one is neither")
    return numbers


def to_bytes(numbers: Numbers) -> bytes:
    """The inverse of from_bytes."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _all_finite(numbers: Numbers, raw: bytes) -> bool:
    # The topmost byte of NaN and infinity is 7f or ff, and of hardly any other number: where no
    # element has such a one, looking at one byte of each is ten times cheaper than adding them up.
    if len(numbers) < FEW:
        return math.isfinite(sum(numbers)) or finite(numbers)
    top = raw[numbers.itemsize - 1 :: numbers.itemsize]
    return not (b"\x7f" in top or b"\xff" in top) or finite(numbers)
