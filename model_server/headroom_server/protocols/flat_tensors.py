"""A one-pass parser for the JSON tensors that nearly all clients send. Pure.

It accepts exactly four fields, no dynamic dimension and flat data. For anything else it returns
None, and the general parser reads it or reports the error. A test checks that both give the same
numbers.
"""

from __future__ import annotations

from typing import Any

from headroom_server.datatypes import DATATYPES
from headroom_server.engine import Work
from headroom_server.signature import Signature
from headroom_server.typed_arrays import Numbers

FIELDS = 4
INTEGERS = {int}


class FlatTensors:
    """Built from a model's signature when it is loaded."""

    def __init__(self, signature: Signature, max_items: int) -> None:
        self._signature = signature
        self._max_items = max_items
        self._columns = {
            spec.name: (spec.datatype, [*spec.shape], spec.elements, DATATYPES[spec.datatype])
            for spec in signature.inputs
            if not spec.dynamic
        }
        self._count = len(signature.inputs)

    def read(self, tensors: Any) -> Work | None:
        """Return the numbers of a request's `inputs`; None if it has another form.

        Raises:
            InvalidRequestError: a value is outside its declared range.
        """
        if type(tensors) is not list or len(tensors) != self._count:
            return None
        items = 0
        inputs: dict[str, Numbers] = {}
        try:
            for tensor in tensors:
                datatype, rest, elements, held = self._columns[tensor["name"]]
                shape, data = tensor["shape"], tensor["data"]
                items = items or shape[0]
                # 1.0 and True equal 1: types are compared as well as values
                if (
                    len(tensor) != FIELDS
                    or tensor["datatype"] != datatype
                    or shape != [items, *rest]
                    or {*map(type, shape)} != INTEGERS
                    or not 1 <= items <= self._max_items
                    or type(data) is not list
                    or len(data) != items * elements
                    or not held.kinds.issuperset(map(type, data))
                ):
                    return None
                inputs[tensor["name"]] = numbers = held.packed(data)
                if not held.finite(numbers):
                    return None
        except (LookupError, TypeError, OverflowError):
            return None
        if len(inputs) != self._count:
            return None
        self._signature.check_ranges(inputs)
        return Work(items, inputs)
