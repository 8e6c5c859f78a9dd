"""Validation of requests to one model, independent of the protocol. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headroom_server.errors import InvalidRequestError, TooWideError
from headroom_server.protocols.flat_tensors import FlatTensors
from headroom_server.signature import Signature
from headroom_server.tensors import DYNAMIC, TensorSpec


class Given(NamedTuple):
    """An input as the client declares it, the batch dimension first."""

    name: str
    datatype: str
    shape: list[int]


class Wanted(NamedTuple):
    """A requested output, as bytes or as a list of numbers."""

    spec: TensorSpec
    binary: bool


class Contract:
    """A model's signature and its largest batch, which limits the items of a request."""

    def __init__(self, signature: Signature, max_items: int) -> None:
        self.signature = signature
        self.max_items = max_items
        self.inputs = {spec.name: spec for spec in signature.inputs}
        self.outputs = {spec.name: spec for spec in signature.outputs}
        self.flat = FlatTensors(signature, max_items)
        self.all_outputs = {
            binary: tuple(Wanted(spec, binary) for spec in signature.outputs)
            for binary in (False, True)
        }
        """The outputs for requests that name none."""
        self.max_length = signature.lengths[-1] if signature.lengths else 0
        self._dynamic_at = {
            spec.name: 1 + spec.shape.index(DYNAMIC) for spec in signature.inputs if spec.dynamic
        }
        self._fixed = {spec.name: [*spec.shape] for spec in signature.inputs if not spec.dynamic}

    def extent(self, given: Sequence[Given]) -> tuple[int, int]:
        """Return items and length of a request, which must have exactly the declared inputs.

        Raises:
            InvalidRequestError: wrong name, datatype or shape, with the rule.
        """
        if len(given) != len(self.inputs) or (
            len(given) > 1 and len({one.name for one in given}) != len(given)
        ):
            raise self._other_names(given)
        items = length = 0
        for name, _, shape in given:
            if name not in self.inputs:
                raise self._other_names(given)
            if not items:
                items = self._items(name, shape)
            if not length and name in self._dynamic_at:
                length = self._length(name, shape)
        for name, datatype, shape in given:
            fixed = self._fixed.get(name)
            wanted = [items, *(self.inputs[name].sized(length) if fixed is None else fixed)]
            if shape != wanted:
                raise InvalidRequestError(
                    f"inputs.{name}.shape must be {wanted}; got {[*shape[:20]]!s:.100}"
                )
            if datatype != self.inputs[name].datatype:
                raise InvalidRequestError(
                    f"inputs.{name}.datatype must be {self.inputs[name].datatype}; got "
                    f"{datatype!r:.100}"
                )
        return items, length

    def output(self, name: str) -> TensorSpec:
        """Return the output with this name.

        Raises:
            InvalidRequestError: the model has none.
        """
        spec = self.outputs.get(name)
        if spec is None:
            raise InvalidRequestError(
                f"outputs must be some of {[*self.outputs]}; got {name!r:.100}"
            )
        return spec

    def check_items(self, items: int, where: str) -> int:
        """Check for at least one item, and no more than fit a batch."""
        if items > self.max_items:
            raise TooWideError(
                f"{where} must have at most {self.max_items} items, the largest batch; got {items}"
            )
        if items < 1:
            raise InvalidRequestError(f"{where} must have at least 1 item; got {items}")
        return items

    def check_length(self, length: int, where: str) -> int:
        """Check that a warmed length is sufficient."""
        if not 1 <= length <= self.max_length:
            raise InvalidRequestError(
                f"{where}: the dynamic dimension must be from 1 to {self.max_length}; got {length}"
            )
        return length

    def _items(self, name: str, shape: Sequence[int]) -> int:
        if shape and 1 <= shape[0] <= self.max_items:
            return shape[0]
        where = f"inputs.{name}.shape"
        if not shape:
            raise InvalidRequestError(f"{where} must have the batch dimension; got []")
        return self.check_items(shape[0], where)

    def _length(self, name: str, shape: Sequence[int]) -> int:
        where, axis = f"inputs.{name}.shape", self._dynamic_at[name]
        if axis >= len(shape):
            dimensions = 1 + len(self.inputs[name].shape)
            raise InvalidRequestError(
                f"{where} must have {dimensions} dimensions; got {len(shape)}"
            )
        return self.check_length(shape[axis], where)

    def _other_names(self, given: Sequence[Given]) -> InvalidRequestError:
        names = sorted(one.name for one in given)
        return InvalidRequestError(
            f"inputs must be exactly {sorted(self.inputs)}; got {names!s:.100}"
        )
