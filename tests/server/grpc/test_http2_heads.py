"""Heads of HTTP/2 connections are bounded before the gRPC library keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.open_inference_grpc.hpack_fields import count_fields
from headroom_server.open_inference_grpc.http2_heads import (
    FRAME_HEAD_BYTES,
    HEAD_BYTES,
    MOST_FRAMES,
    PADDED,
    PRIORITY,
    Http2Heads,
)
from headroom_server.web.connections.http_refusals import MAX_HEADERS
from headroom_server.web.shared_bound import SharedBound
from reliability.attacks.grpc_payloads import END_HEADERS, METHOD, PREFACE, Kind, frame, headers

HEAD = headers(METHOD)
BEGUN = frame(Kind.HEADERS, 0, 1, HEAD)
WHOLE = frame(Kind.HEADERS, END_HEADERS, 1, HEAD)
KNOWN = b"\xbe"
"""A field that the connection has sent before."""
MOST_KNOWN = HEAD + KNOWN * (MAX_HEADERS - 6)


def follower(all_bytes: int = 1 << 24) -> Http2Heads:
    return Http2Heads(SharedBound(all_bytes), "a")


def continued(block: bytes = b"", flags: int = 0) -> bytes:
    return frame(Kind.CONTINUATION, flags, 1, block)


@pytest.mark.parametrize(
    ("frames", "fits"),
    [
        ([WHOLE] * 99, True),
        ([frame(Kind.DATA, 0, 1, bytes(1 << 20)), WHOLE] * 3, True),
        ([BEGUN, *[continued(KNOWN)] * (MOST_FRAMES - 2), continued(KNOWN, END_HEADERS)], True),
        ([BEGUN, *[continued(KNOWN)] * MOST_FRAMES], False),
        ([BEGUN, frame(Kind.DATA, 0, 1, b"x")], False),
        ([frame(Kind.HEADERS, 0, 1, bytes(HEAD_BYTES - FRAME_HEAD_BYTES + 1))], False),
        ([frame(Kind.HEADERS, END_HEADERS, 1, MOST_KNOWN)] * 9, True),
        ([frame(Kind.HEADERS, END_HEADERS, 1, MOST_KNOWN + KNOWN)], False),
        ([frame(Kind.HEADERS, 0, 1, MOST_KNOWN), continued(KNOWN, END_HEADERS)], False),
        ([frame(Kind.HEADERS, END_HEADERS | PADDED, 1, b"\x02" + MOST_KNOWN + bytes(2))], True),
        ([frame(Kind.HEADERS, END_HEADERS | PADDED, 1, b"\x01" + MOST_KNOWN + KNOWN * 2)], False),
        ([frame(Kind.HEADERS, END_HEADERS | PRIORITY, 1, KNOWN * 5 + MOST_KNOWN)], True),
        ([frame(Kind.HEADERS, END_HEADERS, 1, b"\x00\x05ab")], False),
        ([frame(Kind.HEADERS, END_HEADERS, 1, b"\x00\x7f" + b"\xff" * 9000)], False),
    ],
)
def test_each_head_is_bounded_by_bytes_frames_and_fields(frames: list[bytes], fits: bool) -> None:
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
        (b"\x00\x81\xff\x81\xff", 1),
    ],
)
def test_fields_are_counted_by_every_form_of_hpack(block: bytes, fields: int) -> None:
    assert count_fields(bytearray(block), 99) == fields


def test_head_is_held_back_until_it_ends() -> None:
    heads, settings = follower(), frame(Kind.SETTINGS, 0, 0)
    assert heads.passed(PREFACE + settings + BEGUN) == PREFACE + settings
    assert heads.passed(continued(KNOWN)) == b""
    last = continued(KNOWN, END_HEADERS)
    assert heads.passed(last[:-1]) == b""
    assert heads.passed(last[-1:] + b"\0") == BEGUN + continued(KNOWN) + last


@given(st.lists(st.integers(1, 40), min_size=1))
def test_how_bytes_are_cut_changes_nothing(sizes: list[int]) -> None:
    data = PREFACE + frame(Kind.SETTINGS, 0, 0) + BEGUN + continued(KNOWN) * 3
    data += continued(KNOWN, END_HEADERS) + frame(Kind.DATA, 0, 1, bytes(200)) + WHOLE + BEGUN
    heads, at, passed = follower(), 0, b""
    while at < len(data):
        size = sizes[at % len(sizes)]
        passed += heads.passed(data[at : at + size]) or b""
        at += size
    assert passed == data.removesuffix(BEGUN)
    assert heads.passed(continued(bytes(HEAD_BYTES))) is None


def test_what_is_held_is_bounded_together_and_shared_by_clients() -> None:
    receiving = SharedBound(8 * HEAD_BYTES)
    begun = PREFACE + frame(Kind.HEADERS, 0, 1, bytes(HEAD_BYTES - FRAME_HEAD_BYTES))
    several = [Http2Heads(receiving, "a") for _ in range(5)]
    assert [one.passed(begun) for one in several] == [PREFACE] * 4 + [None]
    assert Http2Heads(receiving, "b").passed(begun) == PREFACE
    for one in several:
        one.close()
    assert receiving.held == HEAD_BYTES
