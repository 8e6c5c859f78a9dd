"""Collects requests' flat numbers into padded batches.

Memory for batches is reused: per padded length one set of tensors, with as many rows as the largest
batch so far. A set is used from staging to the end of finishing, by one batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from headroom_server.datatypes import elements
from headroom_server.engine import Work
from headroom_server.json_values import nest
from headroom_server.signature import Signature
from headroom_server.tensors import DYNAMIC, TensorSpec
from headroom_server.torch_engine.dtypes import DTYPES

LARGE_ROW_BYTES = 65_536
"""From this size on each request is copied separately, without the interpreter's lock; smaller ones
are joined first, which costs a tenth of the CPU."""

Memory = Callable[[tuple[int, ...], torch.dtype], torch.Tensor]


@dataclass(slots=True)
class Slot:
    """Memory for one batch, and the requests it contains."""

    length: int
    rows: int
    tensors: dict[str, torch.Tensor]
    strings: dict[str, list[Any]] = field(default_factory=dict)
    """The current batch's strings: nested lists of bytes."""
    works: list[Work] = field(default_factory=list)

    def batch(self, rows: int) -> dict[str, Any]:
        """Return the first rows of every input."""
        return {name: tensor[:rows] for name, tensor in self.tensors.items()} | self.strings


class Slots:
    """The unused sets of tensors. Taken and returned on any thread."""

    def __init__(self, signature: Signature, memory: Memory) -> None:
        mask = () if signature.mask is None else (signature.mask,)
        self._specs = (*signature.inputs, *mask)
        self._memory = memory
        self._free: dict[int, list[Slot]] = defaultdict(list)

    def take(self, rows: int, length: int) -> Slot:
        """Return a set with at least this many rows; create one if none is free."""
        free = self._free[length]
        while free:
            if (slot := free.pop()).rows >= rows:
                return slot
        tensors = {
            spec.name: self._memory((rows, *spec.sized(length)), DTYPES[spec.datatype])
            for spec in self._specs
            if not spec.is_strings
        }
        return Slot(length, rows, tensors)

    def give(self, slot: Slot) -> None:
        """Return a set that is no longer used."""
        slot.works.clear()
        slot.strings.clear()
        self._free[slot.length].append(slot)


def collect(slot: Slot, signature: Signature, batch: Sequence[Work], rows: int) -> None:
    """Write a batch of at most `rows` items; the rest of the rows, and of each row, is zeros.

    Strings are collected into lists; the rest of the rows are empty strings.

    Requests that the slot already contains in the same places are not written again.
    """
    kept = 0
    for one, other in zip(slot.works, batch, strict=False):
        if one is not other:
            break
        kept += 1
    begin = sum(work.items for work in batch[:kept])
    end = sum(work.items for work in batch)
    slot.works = list(batch)
    for spec in signature.inputs:
        if spec.is_strings:
            slot.strings[spec.name] = _strings(spec, batch, rows)
            continue
        tensor = slot.tensors[spec.name]
        _write(tensor[begin:end], spec, batch[kept:], slot.length)
        tensor[end:rows].zero_()
    if signature.mask is not None:
        _mask(slot.tensors[signature.mask.name][begin:rows], batch[kept:])


def _write(into: torch.Tensor, spec: TensorSpec, batch: Sequence[Work], length: int) -> None:
    if not batch:
        return
    dtype = DTYPES[spec.datatype]
    if not spec.dynamic and spec.elements * dtype.itemsize < LARGE_ROW_BYTES:
        joined = bytearray(b"".join(memoryview(work.inputs[spec.name]) for work in batch))
        into.copy_(torch.frombuffer(joined, dtype=dtype).reshape(into.shape))
        return
    axis = 1 + spec.shape.index(DYNAMIC) if spec.dynamic else 0
    for work, rows in zip(batch, torch.split(into, [w.items for w in batch]), strict=True):
        numbers = torch.frombuffer(work.inputs[spec.name], dtype=dtype)
        numbers = numbers.reshape(work.items, *spec.sized(work.length))
        if spec.dynamic:
            rows.narrow(axis, work.length, length - work.length).zero_()
            rows.narrow(axis, 0, work.length).copy_(numbers)
        else:
            rows.copy_(numbers)


def _strings(spec: TensorSpec, batch: Sequence[Work], rows: int) -> list[Any]:
    found: list[object] = []
    for work in batch:
        found += elements(work.inputs[spec.name])
    found += [b""] * (rows * spec.elements - len(found))
    nested = nest(found, (rows, *spec.shape))
    assert isinstance(nested, list)
    return nested


def _mask(into: torch.Tensor, batch: Sequence[Work]) -> None:
    into.zero_()
    at = 0
    for work in batch:
        into[at : at + work.items, : work.length] = 1
        at += work.items
