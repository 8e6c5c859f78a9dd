"""Element types: how numbers and strings are stored, and their JSON values. Pure.

A tensor's elements are stored in a flat `array.array`, with the same bytes as on the wire
(`typed_arrays`). BYTES are stored as in the binary extension: each element follows its length, 4
bytes, little-endian.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headroom_server.typed_arrays import (
    BF16_HIGHEST,
    FP16_HIGHEST,
    Numbers,
    bf16_packed,
    bf16_values,
    exponents_below,
    finite,
    fp16_packed,
    fp16_values,
)

LENGTH = struct.Struct("<I")
"""The length before each element of BYTES."""


@dataclass(frozen=True, slots=True)
class Datatype:
    """An element type of the Open Inference Protocol and the Python array that stores it."""

    name: str
    typecode: str
    kinds: frozenset[type]
    """Accepted JSON types. `bool` is not accepted as a number. gRPC provides `bytes`."""
    lowest: float
    highest: float
    packed: Callable[[Sequence[Any]], Numbers]
    """Converts values of these kinds to the array; raises OverflowError if one is out of range."""
    values: Callable[[Numbers], list[Any]]
    """The inverse: converts the array to JSON values."""
    finite: Callable[[Numbers], bool]
    """Whether no element is NaN or infinite."""
    width: int
    """Bytes of one element; of an empty one if elements differ in size."""

    @property
    def words(self) -> str:
        """Permitted values of a client, for messages."""
        names = {float: "numbers", int: "integers", bool: "true or false", str: "strings"}
        return next(words for kind, words in names.items() if kind in self.kinds)


# ---- numbers that an array holds as they are


def _plain(
    name: str, typecode: str, kinds: Iterable[type], lowest: float, highest: float
) -> Datatype:
    values = _booleans if bool in kinds else _listed
    return Datatype(
        name,
        typecode,
        frozenset(kinds),
        lowest,
        highest,
        lambda numbers: array(typecode, cast("Sequence[float]", numbers)),
        values,
        finite if typecode in "fd" else _always,
        array(typecode).itemsize,
    )


def _listed(numbers: Numbers) -> list[Any]:
    return numbers.tolist()


def _booleans(numbers: Numbers) -> list[Any]:
    return [value != 0 for value in numbers]


def _always(_: Numbers) -> bool:
    return True


def _integers(name: str, typecode: str, bits: int, *, signed: bool) -> Datatype:
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return _plain(name, typecode, (int,), lowest, highest)


# ---- numbers of 16 bits


def _sixteen(
    name: str,
    highest: float,
    packed: Callable[[Sequence[float]], Numbers],
    values: Callable[[Numbers], list[Any]],
    exponent: int,
) -> Datatype:
    kinds = frozenset({int, float})
    below = exponents_below(exponent)
    return Datatype(name, "H", kinds, -highest, highest, packed, values, below, 2)


# ---- strings


def joined(elements: Iterable[bytes]) -> Numbers:
    """Join elements of BYTES, each after its length."""
    return array("B", b"".join([LENGTH.pack(len(one)) + one for one in elements]))


def ends(raw: bytes | memoryview, begin: int = 0) -> Iterator[int]:
    """Yield the end of each element of BYTES, starting at the first byte of one.

    Raises:
        ValueError: the bytes end within an element.
    """
    at, size = begin, len(raw)
    while at < size:
        if size - at < LENGTH.size:
            raise ValueError(f"a length must have 4 bytes; {size - at} are left")
        (length,) = LENGTH.unpack_from(raw, at)
        at += LENGTH.size
        if length > size - at:
            raise ValueError(f"an element must have {length} bytes; {size - at} are left")
        at += length
        yield at


def elements(numbers: Numbers) -> list[bytes]:
    """Return the elements; the inverse of `joined`."""
    raw, at, found = numbers.tobytes(), 0, []
    for end in ends(raw):
        found.append(raw[at + LENGTH.size : end])
        at = end
    return found


def _strings_packed(values: Sequence[str | bytes]) -> Numbers:
    return joined(one.encode() if isinstance(one, str) else one for one in values)


def _strings(numbers: Numbers) -> list[Any]:
    """Decode as UTF-8, as JSON requires; invalid bytes become U+FFFD."""
    return [one.decode(errors="replace") for one in elements(numbers)]


STRINGS = Datatype(
    "BYTES",
    "B",
    frozenset({str, bytes}),
    0,
    0,
    _strings_packed,
    _strings,
    _always,
    LENGTH.size,
)

DATATYPES: dict[str, Datatype] = {
    datatype.name: datatype
    for datatype in (
        _plain("BOOL", "B", (bool,), 0, 1),
        _integers("UINT8", "B", 8, signed=False),
        _integers("UINT16", "H", 16, signed=False),
        _integers("UINT32", "I", 32, signed=False),
        _integers("UINT64", "Q", 64, signed=False),
        _integers("INT8", "b", 8, signed=True),
        _integers("INT16", "h", 16, signed=True),
        _integers("INT32", "i", 32, signed=True),
        _integers("INT64", "q", 64, signed=True),
        _sixteen("FP16", FP16_HIGHEST, fp16_packed, fp16_values, 0x7C00),
        _sixteen("BF16", BF16_HIGHEST, bf16_packed, bf16_values, 0x7F80),
        _plain("FP32", "f", (int, float), -3.4028234663852886e38, 3.4028234663852886e38),
        _plain("FP64", "d", (int, float), -1.7976931348623157e308, 1.7976931348623157e308),
        STRINGS,
    )
}
