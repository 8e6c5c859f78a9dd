"""A model's signature: its inputs and outputs, and the sizes in which it is executed. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from headroom_server.datatypes import DATATYPES
from headroom_server.tensors import DYNAMIC, TensorSpec
from headroom_server.typed_arrays import Numbers
from headroom_server.value_ranges import ValueRange


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
