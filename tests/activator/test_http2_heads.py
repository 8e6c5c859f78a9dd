"""Heads of HTTP/2 connections are bounded before the gRPC library keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from headroom.activator.held_request import HEAD_BYTES
from headroom.activator.hpack_fields import count_fields
from headroom.activator.http2_heads import (
    FRAME_HEAD_BYTES,
    MOST_FIELDS,
    MOST_FRAMES,
    PADDED,
    PRIORITY,
    Http2Heads,
)
from headroom.fair_share import FairShare
from reliability.attacks.grpc_payloads import END_HEADERS, METHOD, PREFACE, Kind, frame, headers
from support.fakes_activator import stage

LARGEST = HEAD_BYTES - FRAME_HEAD_BYTES
HALF = HEAD_BYTES // 2 - FRAME_HEAD_BYTES
HEAD = headers(METHOD)
BEGUN = frame(Kind.HEADERS, 0, 1, HEAD)
KNOWN = b"\xbe"
"""A field that the connection has sent before."""
MOST_KNOWN = HEAD + KNOWN * (MOST_FIELDS - 6)


def follower(all_bytes: int = 1 << 24) -> Http2Heads:
    return Http2Heads(FairShare(all_bytes), "a")


def field(size: int) -> bytes:
    """Give a field of this many bytes."""
    if size < 128:
        return b"\x04" + bytes((size - 2,)) + bytes(size - 2) if size > 1 else KNOWN
    more = size - 5 - 127
    length = (127, more & 127 | 128, more >> 7 & 127 | 128, more >> 14)
    return b"\x04" + bytes(length) + bytes(size - 5)


def continued(size: int, flags: int = 0) -> bytes:
    return frame(Kind.CONTINUATION, flags, 1, field(size))


@pytest.mark.parametrize(
    ("frames", "fits"),
    [
        ([frame(Kind.HEADERS, END_HEADERS, 1, field(LARGEST))] * 9, True),
        ([frame(Kind.HEADERS, END_HEADERS, 1, field(LARGEST + 1))], False),
        ([frame(Kind.HEADERS, 0, 1, field(HALF)), continued(HALF, END_HEADERS)] * 9, True),
        ([frame(Kind.HEADERS, 0, 1, field(HALF)), continued(HALF + 1)], False),
        ([BEGUN, *[continued(1)] * (MOST_FRAMES - 2), continued(1, END_HEADERS)] * 9, True),
        ([BEGUN, *[continued(1)] * MOST_FRAMES], False),
        ([BEGUN, frame(Kind.DATA, 0, 1, b"x")], False),
        ([frame(Kind.DATA, 0, 1, bytes(1 << 20))] * 3, True),
        ([frame(Kind.HEADERS, END_HEADERS, 1, MOST_KNOWN)] * 9, True),
        ([frame(Kind.HEADERS, END_HEADERS, 1, MOST_KNOWN + KNOWN)], False),
        ([frame(Kind.HEADERS, 0, 1, MOST_KNOWN), continued(1, END_HEADERS)], False),
        ([frame(Kind.HEADERS, END_HEADERS | PADDED, 1, b"\x02" + MOST_KNOWN + bytes(2))], True),
        ([frame(Kind.HEADERS, END_HEADERS | PADDED, 1, b"\x01" + MOST_KNOWN + KNOWN * 2)], False),
        ([frame(Kind.HEADERS, END_HEADERS | PRIORITY, 1, KNOWN * 5 + MOST_KNOWN)], True),
        ([frame(Kind.HEADERS, END_HEADERS, 1, b"\x00\x05ab")], False),
        ([frame(Kind.HEADERS, END_HEADERS, 1, b"\x00\x7f" + b"\xff" * 9000)], False),
    ],
)
def test_each_head_is_bounded_with_the_heads_of_its_frames(frames: list[bytes], fits: bool) -> None:
    data = PREFACE + b"".join(frames)
    assert follower().passed(data) == (data if fits else None)


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        (HEAD, 6),
        (b"\x82\xbe\xff\x80\x01", 3),
        (b"\x40\x01a\x01b\x7f\x80\x01\x01b", 2),
        (b"\x3f\xe1\x1f\x20", 2),
        (b"\x04\x01/\x0f\x10\x01x\x10\x01a\x00", 3),
        (b"\x00\x01a\x7f\x81\x01" + bytes(256), 1),
    ],
)
def test_fields_are_counted_by_every_form_of_hpack(block: bytes, fields: int) -> None:
    assert count_fields(bytearray(block), 99) == fields


def test_head_is_held_back_until_it_ends() -> None:
    heads, settings = follower(), frame(Kind.SETTINGS, 0, 0)
    assert heads.passed(PREFACE + settings + BEGUN) == PREFACE + settings
    assert heads.passed(continued(40)) == b""
    last = continued(40, END_HEADERS)
    assert heads.passed(last[:-1]) == b""
    assert heads.passed(last[-1:] + b"\0") == BEGUN + continued(40) + last


@given(st.lists(st.integers(1, 40), min_size=1))
def test_how_bytes_are_cut_changes_nothing(sizes: list[int]) -> None:
    data = PREFACE + frame(Kind.SETTINGS, 0, 0) + BEGUN + continued(40) * 3
    data += continued(9, END_HEADERS) + frame(Kind.DATA, 0, 1, bytes(200)) + BEGUN
    heads, at, passed = follower(), 0, b""
    while at < len(data):
        size = sizes[at % len(sizes)]
        passed += heads.passed(data[at : at + size]) or b""
        at += size
    assert passed == data.removesuffix(BEGUN)
    assert heads.passed(continued(HEAD_BYTES)) is None


def test_what_is_held_is_bounded_together_and_shared_by_namespaces() -> None:
    share = FairShare(8 * HEAD_BYTES)
    begun = PREFACE + frame(Kind.HEADERS, 0, 1, field(LARGEST))
    several = [Http2Heads(share, "a") for _ in range(5)]
    assert [one.passed(begun) for one in several] == [PREFACE] * 4 + [None]
    assert Http2Heads(share, "b").passed(begun) == PREFACE
    assert Http2Heads(share, "a").passed(PREFACE) == PREFACE
    several[1].close()
    assert several[4].passed(b"") == b""


def test_head_that_has_ended_counts_no_longer() -> None:
    share = FairShare(2 * HEAD_BYTES)
    for _ in range(9):
        one = Http2Heads(share, "a")
        assert one.passed(PREFACE + frame(Kind.HEADERS, 0, 1, field(HALF))) == PREFACE
        assert one.passed(continued(HALF, END_HEADERS))


@pytest.mark.clock
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_held_connection_reaches_grpc_until_its_head_is_too_large(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path
) -> None:
    async def connect() -> None:
        async with stage(tmp_path) as held:
            await held.opened()
            reader, writer = await asyncio.open_connection("127.0.0.1", held.port)
            writer.write(PREFACE + frame(Kind.SETTINGS, 0, 0))
            head = await asyncio.wait_for(reader.readexactly(FRAME_HEAD_BYTES), 10.0)
            assert head[3] == Kind.SETTINGS
            writer.write(BEGUN + continued(240) * 1000)
            with suppress(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 10.0)
            writer.close()
            with suppress(ConnectionResetError):
                await writer.wait_closed()

    run(connect())
