"""An answer is complete when all of its bytes are there, in whatever pieces they came."""

from __future__ import annotations

import pytest

from serverbench.generator.http_answers import head_of, is_complete

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
UNTIL_THE_END = b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nno"


@pytest.mark.parametrize("answer", [LENGTH, CHUNKED], ids=["length", "chunks"])
def test_partial_answer_is_not_complete(answer: bytes) -> None:
    for end in range(len(answer)):
        part = answer[:end]
        head = head_of(part)
        assert head is None or not is_complete(part, head, ended=False)
    head = head_of(answer)
    assert head is not None
    assert is_complete(answer, head, ended=False)
    assert (head.status, head.closes) == (200, False)


def test_without_a_length_the_connection_ends_the_answer() -> None:
    head = head_of(UNTIL_THE_END)
    assert head is not None
    assert (head.status, head.closes, head.length) == (503, True, None)
    assert not is_complete(UNTIL_THE_END, head, ended=False)
    assert is_complete(UNTIL_THE_END, head, ended=True)
