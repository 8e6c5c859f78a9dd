"""Tensor declarations (shape, datatype), and numbers checked against them. Pure.

A request's numbers are stored in flat typed arrays (`array.array`), which are compact while they
wait and become a torch tensor without conversion. Shapes are per item; the batch dimension comes
first and is not listed. One dimension of an item may be dynamic, written -1: its size is the
request's length, the same for all tensors and items of a request.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from headroom_server.datatypes import DATATYPES, STRINGS, Numbers, ends
from headroom_server.errors import InvalidRequestError
from headroom_server.json_values import kind
from headroom_server.typed_arrays import finite
from headroom_server.value_ranges import ValueRange

__all__ = ["DATATYPES", "DYNAMIC", "Numbers", "Signature", "TensorSpec", "finite"]

DYNAMIC = -1
"""The request's length, in a shape."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A declared input or output: `shape` is that of one item, with at most one -1."""

    name: str
    datatype: str
    shape: tuple[int, ...] = ()
    value_range: ValueRange | None = field(default=None, compare=False)
    """What a request may send: of tokens, from 0 to the size of the vocabulary less 1."""
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


@dataclass(frozen=True, slots=True)
class Signature:
    """A model's inputs and outputs, and the shapes in which the device executes it."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    lengths: tuple[int, ...] = ()
    """Warmed lengths of the dynamic dimension, ascending; () if there is none. Requests are padded
    with zeros to the next of them."""
    batches: tuple[int, ...] = ()
    """Warmed batch sizes, ascending; () if every size is warmed."""
    mask: TensorSpec | None = None
    """An additional input that the server generates: 1 where an item has data, 0 where it is
    padded. Of shape (-1,)."""
    _finite: tuple[tuple[str, Callable[[Numbers], bool]], ...] = field(
        init=False, repr=False, compare=False
    )
    """For each output, the test whether all its numbers are finite."""
    _ranges: tuple[tuple[str, ValueRange], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ValueError for missing or repeated tensors, or shapes that do not fit together."""
        inputs = self.inputs if self.mask is None else (*self.inputs, self.mask)
        for side, specs in (("inputs", inputs), ("outputs", self.outputs)):
            names = [spec.name for spec in specs]
            if not (self.inputs and names) or len(set(names)) != len(names):
                raise ValueError(
                    f"the {side} of a model must be at least one, with distinct names; got {names}"
                )
        if any(spec.value_range for spec in self.outputs):
            raise ValueError("minimum and maximum must be of inputs; an output has one")
        for name, sizes in (("lengths", self.lengths), ("batches", self.batches)):
            if any(size < 1 for size in sizes) or any(a >= b for a, b in pairwise(sizes)):
                raise ValueError(f"{name} must be at least 1 and ascending; got {sizes}")
        if self.dynamic != bool(self.lengths):
            raise ValueError(
                "a model must have lengths if and only if an input has the dimension -1; got "
                f"lengths {self.lengths} and shapes {[spec.shape for spec in self.inputs]}"
            )
        if not self.dynamic and any(spec.dynamic for spec in self.outputs):
            raise ValueError("an output must not be dynamic unless an input is")
        if self.mask is not None and self.mask.is_strings:
            raise ValueError("a mask must have numbers or booleans; got BYTES")
        if self.mask is not None and (self.mask.shape != (DYNAMIC,) or not self.dynamic):
            raise ValueError(
                "a mask must have the shape (-1,) and requires a dynamic input; got "
                f"{self.mask.shape}"
            )
        finite_of = tuple((one.name, DATATYPES[one.datatype].finite) for one in self.outputs)
        object.__setattr__(self, "_finite", finite_of)
        ranges = ((one.name, one.value_range) for one in self.inputs)
        object.__setattr__(self, "_ranges", tuple(one for one in ranges if one[1] is not None))

    def all_finite(self, outputs: Mapping[str, Numbers]) -> bool:
        """Return whether no number of the outputs is NaN or infinite."""
        for name, finite_numbers in self._finite:  # noqa: SIM110 - per answer, one output mostly
            if not finite_numbers(outputs[name]):
                return False
        return True

    def check_ranges(self, inputs: Mapping[str, Numbers]) -> None:
        """Check the values of a request's inputs whose range is declared.

        Raises:
            InvalidRequestError: one is outside.
        """
        for name, allowed in self._ranges:
            allowed.check(inputs[name], f"inputs.{name}")

    @property
    def dynamic(self) -> bool:
        """Whether requests have a length."""
        return any(spec.dynamic for spec in self.inputs)

    def padded_length(self, length: int) -> int:
        """Return the smallest warmed length that is sufficient; 0 if the model has none.

        Raises:
            ValueError: no warmed length is sufficient.
        """
        return _padded("length", self.lengths, length) if self.lengths else 0

    def padded_batch(self, items: int) -> int:
        """Return the smallest warmed batch size for this many items.

        Raises:
            ValueError: no warmed size is sufficient.
        """
        return _padded("batch", self.batches, items) if self.batches else items


def _padded(what: str, warmed: tuple[int, ...], size: int) -> int:
    at = bisect_left(warmed, size)
    if size < 1 or at == len(warmed):
        raise ValueError(f"a {what} must be from 1 to {warmed[-1]}; got {size}")
    return warmed[at]
