"""A request as bytes: its end, its deadline, and its forwarded form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.activator.held_request import Refusal, RefusalReason
from headroom.activator.http_request import Incoming, MalformedError, answer, status_of

HEAD = b"POST /v2/infer HTTP/1.1\r\nhost: resnet50\r\ncontent-length: 5\r\n"


def fed(*pieces: bytes) -> Incoming:
    incoming = Incoming()
    for piece in pieces:
        incoming.feed(piece)
    return incoming


@settings(max_examples=100)
@given(st.lists(st.integers(min_value=1, max_value=90), max_size=8), st.booleans())
def test_parsing_does_not_depend_on_chunk_boundaries(cuts: list[int], chunked: bool) -> None:
    body = b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n" if chunked else b"hello"
    head = HEAD.replace(b"content-length: 5", b"transfer-encoding: chunked") if chunked else HEAD
    whole = head + b"\r\n" + body
    places = sorted({cut for cut in cuts if cut < len(whole)})
    pieces = [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]
    incoming = fed(*pieces)
    assert incoming.complete
    assert incoming.head == head + b"\r\n"
    assert bytes(incoming.rest) == body
    assert not fed(whole[:-1]).complete


@pytest.mark.parametrize(
    ("line", "timeout_s"),
    [
        (b"x-request-timeout: 2.5", 2.5),
        (b"x-request-timeout: soon", None),
        (b"x-request-timeout: -1", None),
        (b"x-request-timeout: inf", None),
        (b"grpc-timeout: 1500m", 1.5),
        (b"grpc-timeout: 2S", 2.0),
        (b"grpc-timeout: 2", None),
        (b"x-other: 1", None),
    ],
)
def test_timeout_header_is_parsed(line: bytes, timeout_s: float | None) -> None:
    assert fed(HEAD + line + b"\r\n\r\nhello").timeout_s == timeout_s


def test_forwarded_request_has_the_remaining_deadline_and_closes_the_connection() -> None:
    lines = b"X-Request-Timeout: 5\r\nConnection: keep-alive\r\nX-Kept: As It Was\r\n"
    incoming = fed(HEAD + lines + b"\r\nhello")
    assert incoming.forwarded_head(held_s=1.25) == (
        HEAD + b"X-Kept: As It Was\r\nx-request-timeout: 3.750\r\nconnection: close\r\n\r\n"
    )
    assert incoming.rest == b"hello"


def test_upgrade_request_keeps_its_connection_header() -> None:
    head = b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    incoming = fed(head)
    assert (incoming.complete, incoming.upgrade) == (True, True)
    assert incoming.forwarded_head(held_s=1.0) == head


@pytest.mark.parametrize(
    "raw",
    [b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, b"\x16\x03\x01\x00\xa5"],
)
def test_malformed_request_is_rejected(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        fed(raw)


def test_refusal_has_retry_after_and_disables_retries() -> None:
    refusal = Refusal(status=503, why=RefusalReason.TOO_LATE, message="not before", retry_after_s=7)
    head, _, body = answer(refusal).partition(b"\r\n\r\n")
    assert json.loads(body) == {"error": "not before", "reason": "TooLate"}
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 503 Service Unavailable"
    assert {b"retry-after: 7", b"x-envoy-ratelimited: true", b"connection: close"} < set(lines)
    assert status_of(answer(refusal)) == 503


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1", b"HTTP/2 200", b"SMTP 220 hello"])
def test_malformed_response_has_no_status(data: bytes) -> None:
    assert status_of(data) is None
