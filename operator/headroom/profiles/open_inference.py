"""Builds a request of ones from a model's metadata (Open Inference Protocol). Pure.

The metadata comes from an untrusted server. Everything is bounded in sum, before the work: the
inputs, their dimensions, and the elements of all inputs together. The body is not built: it is
described by repeated pieces, and is sent in chunks of at most `CHUNK_BYTES`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MOST_INPUTS = 256
MOST_DIMENSIONS = 32
"""Most dimensions of one input. NumPy has at most 64; no served model comes near."""
MOST_ELEMENTS = 1 << 20
"""Most elements of all inputs together: an image of 3 x 512 x 512 has 786 432."""
CHUNK_BYTES = 1 << 16
ONES: Mapping[str, object] = {"BOOL": True, "BYTES": "1", "FP32": 1.0, "FP64": 1.0} | dict.fromkeys(
    ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"), 1
)
"""A one by datatype, as JSON carries it; it carries no FP16 and BF16."""


class UnusableMetadata(ValueError):  # noqa: N818  (named by what it is about)
    """No request follows from the metadata; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedText:
    """A body, as pieces with the number of their repetitions."""

    pieces: tuple[tuple[bytes, int], ...]

    @property
    def size(self) -> int:
        """Bytes of the whole body."""
        return sum(len(text) * count for text, count in self.pieces)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the pieces; a piece takes some 100 besides."""
        return sum(len(text) + 100 for text, _ in self.pieces)

    def chunks(self) -> Iterator[bytes]:
        """Yield the body in chunks; each piece is shorter than a chunk, or occurs once."""
        for text, count in self.pieces:
            at_once = max(1, CHUNK_BYTES // len(text))
            for done in range(0, count, at_once):
                yield text * min(at_once, count - done)


def request_of_ones(metadata: object, ones: Mapping[str, object] = ONES) -> RepeatedText:
    """Return the body of a request with ones for every input; free dimensions become 1.

    Raises:
        UnusableMetadata: if an input cannot be sent, or all together are too large.
    """
    inputs = metadata.get("inputs") if isinstance(metadata, dict) else None
    if not isinstance(inputs, list) or not 0 < len(inputs) <= MOST_INPUTS:
        found = len(inputs) if isinstance(inputs, list) else "no list"
        raise UnusableMetadata(
            f"the model's metadata must list 1 to {MOST_INPUTS} inputs; got {found}"
        )
    pieces: list[tuple[bytes, int]] = []
    left = MOST_ELEMENTS
    for index, described in enumerate(inputs):
        head, one, count = _input(described, ones, left)
        left -= count
        opened = ("" if index else '{"inputs": [') + head + ', "data": [' + one
        closed = "]}" + (", " if index + 1 < len(inputs) else "]}")
        pieces += [(opened.encode(), 1), (f", {one}".encode(), count - 1), (closed.encode(), 1)]
    return RepeatedText(pieces=tuple(piece for piece in pieces if piece[1]))


def _input(described: object, ones: Mapping[str, object], left: int) -> tuple[str, str, int]:
    """Return the JSON of one input without its data and its closing brace, a one, and how many."""
    match described:
        case {"name": str(name), "datatype": str(datatype), "shape": [*sizes]} if all(
            type(size) is int for size in sizes
        ):
            shape = [max(1, size) for size in sizes]
        case _:
            raise UnusableMetadata(
                f"an input must have a name, a datatype and a shape; got {_shown(described)}"
            )
    if datatype not in ones:
        raise UnusableMetadata(
            f"input {name!r:.40} must have a datatype that JSON carries; got {datatype!r:.40}"
        )
    count = _elements(shape, left)
    if count is None:
        raise UnusableMetadata(
            f"all inputs together must have at most {MOST_ELEMENTS} elements, and an input at most "
            f"{MOST_DIMENSIONS} dimensions; input {name!r:.40} exceeds it"
        )
    head = json.dumps({"name": name, "datatype": datatype, "shape": shape})
    return head.removesuffix("}"), json.dumps(ones[datatype]), count


def _elements(shape: list[int], most: int) -> int | None:
    """Return the product of the sizes; None as soon as it is above `most`."""
    if len(shape) > MOST_DIMENSIONS:
        return None
    count = 1
    for size in shape:
        count *= size
        if count > most:
            return None
    return count


def _shown(described: object) -> str:
    """Return a short form of a value that may be large or deep."""
    if isinstance(described, Mapping):
        return "{" + ", ".join(f"{key!r:.20}" for key in [*described][:5]) + "}"
    return type(described).__name__
