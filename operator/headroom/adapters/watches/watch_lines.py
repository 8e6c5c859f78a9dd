"""Reads the lines of a watch, and which object each event is about, without a full parse. Pure."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson

MAX_LINE_BYTES = 1 << 22
_BEGINNING = 1 << 12

_HEAD = re.compile(
    rb'\{"type":"(ADDED|MODIFIED|DELETED)","object":\{(?:"(?:kind|apiVersion)":"[^"]*+",)*+'
    rb'"metadata":\{((?:"\w++":"(?:[^"\\]++|\\.)*+",?)*+)'
)
"""The API server writes the texts of metadata first: name, namespace, UID, version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """First fields of an event."""

    kind: str
    name: str
    namespace: str
    uid: str
    resource_version: str

    def identity(self) -> dict[str, str]:
        """Return the metadata that names the object."""
        return {"name": self.name, "namespace": self.namespace, "uid": self.uid}

    def is_before(self, version: int) -> bool:
        """Return whether it is of an older state of the object than that of this version."""
        return version_of(self.resource_version) < version


def version_of(text: object) -> int:
    """Return a version as a number; 0 if it is none."""
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else 0


def head_of(line: bytes) -> Head | None:
    """Return the head of an event; None if it is of no object, or written in another way."""
    found = _HEAD.match(line)
    try:
        metadata: dict[str, Any] = orjson.loads(b"{%b}" % found[2].rstrip(b",")) if found else {}
    except orjson.JSONDecodeError:
        return None
    if found is None or not metadata.keys() >= {"name", "namespace", "uid"}:
        return None
    return Head(
        kind=found[1].decode(),
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion", ""),
    )


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bool]]:
    """Yield each line and True; of one above the bound, its beginning and False."""
    parts: list[bytes] = []
    size = 0
    async for piece in pieces:
        for number, part in enumerate(piece.split(b"\n")):
            if number:  # the line before it has ended
                if size <= MAX_LINE_BYTES:
                    yield b"".join(parts), True
                parts, size = [], 0
            parts.append(part)
            size += len(part)
            if size > MAX_LINE_BYTES:
                if size - len(part) <= MAX_LINE_BYTES:
                    yield b"".join(parts)[:_BEGINNING], False
                parts.clear()
