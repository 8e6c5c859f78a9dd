"""Lines of a watch, and the heads of events, as the API server writes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from headroom.adapters.watches.watch_lines import MAX_LINE_BYTES, Head, head_of, lines_of

START = b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{'
NAMED = b'"name":"p-x","generateName":"p-","namespace":"n","uid":"u","resourceVersion":"7",'
HEAD = Head(kind="ADDED", name="p-x", namespace="n", uid="u", resource_version="7")


@pytest.mark.parametrize(
    ("line", "head"),
    [
        (START + NAMED + b'"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}}}}', HEAD),
        (START + NAMED + b'"generation":1}}}', HEAD),
        (START + NAMED.replace(b'"p-"', rb'"\u003c\",\"uid\":\"v"') + b'"labels":{}}}}', HEAD),
        (START + b'"labels":{' + NAMED + b'"a":"b"}}}}', None),
        (START + b'"name":"p","resourceVersion":"7"}}}', None),
        (b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{' + NAMED + b'"a":"b"}}}', None),
        (b'{"type": "ADDED", "object": {}}', None),
        (b"", None),
    ],
)
def test_head(line: bytes, head: Head | None) -> None:
    assert head_of(line) == head


def test_head_of_a_hostile_event_is_found_in_linear_time() -> None:
    text = b'"a":"' + rb"\\" * 200_000
    assert head_of(START + text) is None
    assert head_of(START + b'"a":"b",' * 100_000) is None


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_lines_are_the_same_however_they_arrive(size: int) -> None:
    data = b"one\ntwo\n\nthree\nwithout an end"
    assert found(data, size) == [(b"one", True), (b"two", True), (b"", True), (b"three", True)]


def test_line_above_the_bound_is_cut_and_the_others_are_whole() -> None:
    large = b"x" * (MAX_LINE_BYTES + 5)
    cut = (large[:4096], False)
    data = b"\n".join([b"a", large, b"b", large, large, b"c", b""])
    expected = [(b"a", True), cut, (b"b", True), cut, cut, (b"c", True)]
    assert found(data, 1 << 16) == expected


def found(data: bytes, size: int) -> list[tuple[bytes, bool]]:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), size):
            yield data[at : at + size]

    async def read() -> list[tuple[bytes, bool]]:
        return [one async for one in lines_of(pieces())]

    return asyncio.run(read())
