"""PURE. Tensors as JSON carries them: datatypes, declared shapes, and numbers checked against both.

A request's numbers are held in flat typed arrays (`array.array`), which are compact while they wait
and become a torch tensor without looking at each number again. Shapes are per item; the batch
dimension stands before them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, cast

from headroom_server.errors import InvalidRequestError

Numbers: TypeAlias = "array[int] | array[float]"


@dataclass(frozen=True, slots=True)
class Datatype:
    """One element type of the Open Inference Protocol and the Python array that holds it."""

    name: str
    typecode: str
    kinds: frozenset[type]
    """JSON types that may stand for it. `bool` is not a number here."""
    lowest: float
    highest: float

    @property
    def words(self) -> str:
        """What a client may send, for messages."""
        names = {int: "integers", float: "numbers", bool: "true or false"}
        return names[float] if float in self.kinds else names[next(iter(self.kinds))]


def _integers(name: str, typecode: str, bits: int, *, signed: bool) -> Datatype:
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return Datatype(name, typecode, frozenset({int}), lowest, highest)


def _floats(name: str, typecode: str, highest: float) -> Datatype:
    return Datatype(name, typecode, frozenset({int, float}), -highest, highest)


DATATYPES: dict[str, Datatype] = {
    datatype.name: datatype
    for datatype in (
        Datatype("BOOL", "B", frozenset({bool}), 0, 1),
        _integers("UINT8", "B", 8, signed=False),
        _integers("INT8", "b", 8, signed=True),
        _integers("INT16", "h", 16, signed=True),
        _integers("INT32", "i", 32, signed=True),
        _integers("INT64", "q", 64, signed=True),
        _floats("FP32", "f", 3.4028234663852886e38),
        _floats("FP64", "d", 1.7976931348623157e308),
    )
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A declared input or output: `shape` is that of one item."""

    name: str
    datatype: str
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a datatype that JSON cannot carry here, or a dimension below 1."""
        if self.datatype not in DATATYPES:
            known = ", ".join(DATATYPES)
            raise ValueError(f"tensor {self.name}: datatype is one of {known}; got {self.datatype}")
        if any(size < 1 for size in self.shape):
            raise ValueError(f"tensor {self.name}: dimensions are at least 1; got {self.shape}")

    @property
    def elements(self) -> int:
        """Numbers in one item."""
        return math.prod(self.shape)

    def numbers(self, values: list[object], where: str) -> Numbers:
        """Check a flat list against the datatype.

        Raises:
            InvalidRequestError: naming `where`, the rule and the first value that breaks it.
        """
        datatype = DATATYPES[self.datatype]
        if not datatype.kinds.issuperset(map(type, values)):
            index = next(i for i, value in enumerate(values) if type(value) not in datatype.kinds)
            raise InvalidRequestError(
                f"{where}: {self.datatype} holds {datatype.words}; element {index} is "
                f"{_kind(values[index])}"
            )
        numbers: Numbers | None
        try:
            numbers = array(datatype.typecode, cast("list[float]", values))
        except OverflowError:
            numbers = None
        if numbers is None or not finite(numbers):
            raise InvalidRequestError(
                f"{where}: {self.datatype} holds finite values from {datatype.lowest:g} to "
                f"{datatype.highest:g}; one is outside"
            )
        return numbers

    def zeros(self, items: int) -> Numbers:
        """As many items of zeros, for warm-up."""
        typecode = DATATYPES[self.datatype].typecode
        return array(typecode, bytes(array(typecode).itemsize * self.elements * items))


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model takes and gives."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def __post_init__(self) -> None:
        """Raise ValueError where a side is empty or names a tensor twice."""
        for side, specs in (("inputs", self.inputs), ("outputs", self.outputs)):
            names = [spec.name for spec in specs]
            if not names or len(set(names)) != len(names):
                raise ValueError(
                    f"{side} of a model are at least one, with distinct names; got {names}"
                )


def finite(numbers: Iterable[float]) -> bool:
    """Whether no number is NaN or infinite. The sum decides, unless finite numbers overflow it."""
    return math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers))


def flatten(data: object, shape: Sequence[int], where: str) -> list[object]:
    """Nested lists of exactly this shape as one flat list.

    Raises:
        InvalidRequestError: naming the axis, its size, and what was found.
    """
    level: list[object] = [data]
    for axis, size in enumerate(shape):
        if {*map(type, level)} - {list}:
            found = next(value for value in level if type(value) is not list)
            raise InvalidRequestError(
                f"{where}: shape is {list(shape)}, so axis {axis} is a list of {size}; got "
                f"{_kind(found)}"
            )
        lengths = {*map(len, level)}  # type: ignore[arg-type]
        if lengths - {size}:
            raise InvalidRequestError(
                f"{where}: shape is {list(shape)}, so axis {axis} has {size} elements; got "
                f"{next(iter(lengths - {size}))}"
            )
        level = list(chain.from_iterable(level))  # type: ignore[arg-type]
    return level


def nest(flat: list[object], shape: Sequence[int]) -> object:
    """The inverse of flatten; an empty shape gives the single element."""
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat if shape else flat[0]


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "an integer", float: "a fraction", type(None): "null"}
    return names.get(type(value), type(value).__name__)
