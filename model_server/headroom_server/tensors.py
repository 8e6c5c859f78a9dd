"""Declared tensors: shape and datatype, and a request's numbers checked against them. Pure.

A request's numbers are stored in flat typed arrays (`array.array`), which are compact while they
wait and become a torch tensor without conversion. Shapes are per item; the batch dimension comes
first and is not listed. One dimension of an item may be dynamic, written -1: its size is the
request's length, the same for all tensors and items of a request.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field

from headroom_server.datatypes import DATATYPES, STRINGS, ends
from headroom_server.errors import InvalidRequestError
from headroom_server.json_values import kind
from headroom_server.typed_arrays import Numbers
from headroom_server.value_ranges import ValueRange

DYNAMIC = -1
"""The request's length, in a shape."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A declared input or output: `shape` is that of one item, with at most one -1."""

    name: str
    datatype: str
    shape: tuple[int, ...] = ()
    value_range: ValueRange | None = field(default=None, compare=False)
    """Range of values that a request may send; of tokens, from 0 to the size of the vocabulary less
    1."""
    dynamic: bool = field(init=False, repr=False, compare=False)
    """Whether a dimension is the request's length."""
    elements: int = field(init=False, repr=False, compare=False)
    """Numbers in one item; in one of length 1 if the shape is dynamic."""
    is_strings: bool = field(init=False, repr=False, compare=False)
    """Whether the elements are strings, each with its own length."""

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown datatype or an impossible shape."""
        object.__setattr__(self, "dynamic", DYNAMIC in self.shape)
        object.__setattr__(self, "elements", abs(math.prod(self.shape)))
        object.__setattr__(self, "is_strings", self.datatype == STRINGS.name)
        if self.datatype not in DATATYPES:
            known = ", ".join(DATATYPES)
            raise ValueError(
                f"tensor {self.name}: datatype must be one of {known}; got {self.datatype}"
            )
        if any(size < 1 and size != DYNAMIC for size in self.shape):
            raise ValueError(
                f"tensor {self.name}: dimensions must be at least 1, or -1 if dynamic; got "
                f"{self.shape}"
            )
        if self.shape.count(DYNAMIC) > 1:
            raise ValueError(
                f"tensor {self.name}: at most one dimension must be -1; got {self.shape}"
            )
        if self.value_range is not None:
            self.value_range.check_datatype(self.datatype)
        if self.is_strings and self.dynamic:
            raise ValueError(
                f"tensor {self.name}: BYTES must not have a dimension -1, because strings are not "
                f"padded; got {self.shape}"
            )

    def sized(self, length: int) -> tuple[int, ...]:
        """Return the shape of one item of this length; the declared one if nothing is dynamic."""
        if not self.dynamic:
            return self.shape
        return tuple(length if size == DYNAMIC else size for size in self.shape)

    def elements_at(self, length: int) -> int:
        """Return the count of numbers in one item of this length."""
        return self.elements * length if self.dynamic else self.elements

    def numbers(self, values: list[object], where: str) -> Numbers:
        """Check a flat list against the datatype and pack it.

        Raises:
            InvalidRequestError: with `where`, the rule and the first wrong value.
        """
        datatype = DATATYPES[self.datatype]
        if not datatype.kinds.issuperset(map(type, values)):
            index = next(i for i, value in enumerate(values) if type(value) not in datatype.kinds)
            raise InvalidRequestError(
                f"{where} must be {datatype.words} ({self.datatype}); element {index} is "
                f"{kind(values[index])}"
            )
        numbers: Numbers | None
        try:
            numbers = datatype.packed(values)
        except OverflowError:
            numbers = None
        if numbers is None or not datatype.finite(numbers):
            raise InvalidRequestError(
                f"{where} must have finite values ({self.datatype}) from {datatype.lowest:g} to "
                f"{datatype.highest:g}; one is outside"
            )
        return numbers

    def count(self, numbers: Numbers) -> int:
        """Return how many elements an array of this datatype holds.

        Raises:
            ValueError: BYTES end within an element.
        """
        return sum(1 for _ in ends(numbers.tobytes())) if self.is_strings else len(numbers)

    def zeros(self, items: int, length: int = 0) -> Numbers:
        """Return this many items of zeros, or of empty strings, for warm-up."""
        datatype = DATATYPES[self.datatype]
        return array(datatype.typecode, bytes(datatype.width * self.elements_at(length) * items))
