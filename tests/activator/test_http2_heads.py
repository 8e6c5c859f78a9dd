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
from headroom.activator.http2_heads import FRAME_HEAD_BYTES, MOST_FRAMES, Http2Heads
from headroom.fair_share import FairShare
from reliability.attacks.grpc_payloads import END_HEADERS, METHOD, PREFACE, Kind, frame, headers
from support.fakes_activator import stage

LARGEST = HEAD_BYTES - FRAME_HEAD_BYTES
HALF = HEAD_BYTES // 2 - FRAME_HEAD_BYTES
BEGUN = frame(Kind.HEADERS, 0, 1, headers(METHOD))


def follower(all_bytes: int = 1 << 24) -> Http2Heads:
    return Http2Heads(FairShare(all_bytes), "a")


def continued(size: int, flags: int = 0) -> bytes:
    return frame(Kind.CONTINUATION, flags, 1, bytes(size))


@pytest.mark.parametrize(
    ("frames", "fits"),
    [
        ([frame(Kind.HEADERS, END_HEADERS, 1, bytes(LARGEST))] * 9, True),
        ([frame(Kind.HEADERS, END_HEADERS, 1, bytes(LARGEST + 1))], False),
        ([frame(Kind.HEADERS, 0, 1, bytes(HALF)), continued(HALF, END_HEADERS)] * 9, True),
        ([frame(Kind.HEADERS, 0, 1, bytes(HALF)), continued(HALF + 1)], False),
        ([BEGUN, *[continued(1)] * (MOST_FRAMES - 2), continued(1, END_HEADERS)] * 9, True),
        ([BEGUN, *[continued(1)] * MOST_FRAMES], False),
        ([BEGUN, frame(Kind.DATA, 0, 1, b"x")], False),
        ([frame(Kind.DATA, 0, 1, bytes(1 << 20))] * 3, True),
    ],
)
def test_each_head_is_bounded_with_the_heads_of_its_frames(frames: list[bytes], fits: bool) -> None:
    data = PREFACE + b"".join(frames)
    assert follower().passed(data) == (data if fits else None)


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
    begun = PREFACE + frame(Kind.HEADERS, 0, 1, bytes(LARGEST))
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
        assert one.passed(PREFACE + frame(Kind.HEADERS, 0, 1, bytes(HALF))) == PREFACE
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
