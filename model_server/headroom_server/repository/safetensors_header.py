"""The header of a safetensors file: names, types and shapes, without the numbers. Pure.

The file is 8 bytes of length (little endian), that many bytes of JSON, then the numbers. The JSON
maps names to {"dtype", "shape", "data_offsets": [begin, end]}. Source:
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from headroom_server.engine import LoadError

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8} | {
    f"{kind}{bits}": bits for kind in ("I", "U", "F") for bits in (16, 32, 64)
}
BITS |= {"BF16": 16, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


class Held(NamedTuple):
    """One tensor of the file."""

    dtype: str
    shape: tuple[int, ...]


_Size = Annotated[int, Field(ge=0, lt=1 << 63, strict=True)]
MOST_DIMENSIONS = 64
"""The product of 80 000 sizes took 92 s, in which no other thread ran. NumPy and torch have 64."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    dtype: str
    shape: Annotated[list[_Size], Field(max_length=MOST_DIMENSIONS)]
    data_offsets: tuple[_Size, _Size]


_ENTRIES = TypeAdapter(dict[str, _Entry | dict[str, str]])


def header_bytes(start: bytes, name: str) -> int:
    """Return the length of the JSON, from the file's first 8 bytes.

    Raises:
        LoadError: there are fewer bytes, or it exceeds the format's limit.
    """
    length = int.from_bytes(start, "little")
    if len(start) != LENGTH_BYTES or not 2 <= length <= MAX_HEADER_BYTES:
        raise LoadError(
            f"{name} is not a safetensors file; write it with safetensors.torch.save_file"
        )
    return length


def parse(header: bytes, file_bytes: int, name: str) -> dict[str, Held]:
    """Parse the tensors, and check their offsets against each other and the file's size.

    Raises:
        LoadError: the header is malformed, or tensors overlap, leave gaps or are truncated.
    """
    try:
        entries = _ENTRIES.validate_json(header)
    except ValidationError as error:
        raise LoadError(f"{name} has no valid safetensors header: write it again") from error
    tensors = {key: one for key, one in entries.items() if isinstance(one, _Entry)}
    if any(key != "__metadata__" for key in entries.keys() - tensors.keys()):
        raise LoadError(f"{name} has no valid safetensors header: write it again")
    _check_places(tensors, file_bytes - LENGTH_BYTES - len(header), name)
    return {key: Held(one.dtype, tuple(one.shape)) for key, one in tensors.items()}


def _check_places(tensors: Mapping[str, _Entry], data_bytes: int, name: str) -> None:
    at = 0
    for key, one in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        begin, end = one.data_offsets
        bits = BITS.get(one.dtype)
        if bits is None:
            raise LoadError(
                f"{name}: {key}: dtype must be one of {sorted(BITS)}; got {one.dtype!r:.40}"
            )
        if begin != at or (end - begin) * 8 != bits * math.prod(one.shape):
            raise LoadError(f"{name}: {key}: its data_offsets do not match its shape")
        at = end
    if at != data_bytes:
        raise LoadError(
            f"{name}: must have {at} bytes of numbers; got {data_bytes}: the file is truncated"
        )


def compare(found: Mapping[str, Held], expected: Mapping[str, tuple[int, ...]], name: str) -> None:
    """Compare a file's tensors with the names and shapes of an architecture.

    Raises:
        LoadError: with what is missing, unknown, or of another shape.
    """
    missing, unknown = (
        sorted(expected.keys() - found.keys()),
        sorted(found.keys() - expected.keys()),
    )
    if missing or unknown:
        raise LoadError(
            f"{name}: the tensors do not match the architecture; missing {missing!s:.200}, unknown "
            f"{unknown!s:.200}: set its parameters to those of the training"
        )
    for key, shape in expected.items():
        if found[key].shape != shape:
            raise LoadError(
                f"{name}: {key}: shape must be {list(shape)} with these parameters; got "
                f"{list(found[key].shape)}"
            )
