"""Finds the end of an HTTP/1.1 answer: cheap, and enough for known servers."""

from __future__ import annotations

from typing import NamedTuple

SEPARATOR = b"\r\n\r\n"


class Head(NamedTuple):
    """The parts of an answer's head that tell where it ends and what follows."""

    status: int
    body_at: int
    length: int | None
    """None: until the connection ends."""
    chunked: bool
    closes: bool


def head_of(answer: bytes) -> Head | None:
    """The head, once it is complete."""
    end = answer.find(SEPARATOR)
    if end < 0:
        return None
    head = answer[: end + 2].lower()
    chunked = b"\r\ntransfer-encoding: chunked\r\n" in head
    closes = b"\r\nconnection: close\r\n" in head
    at = head.find(b"\r\ncontent-length:")
    length = None if at < 0 else int(head[at + 17 : head.find(b"\r\n", at + 17)])
    return Head(int(head[9:12]), end + len(SEPARATOR), length, chunked, closes)


def is_complete(answer: bytes, head: Head, *, ended: bool) -> bool:
    """Return whether the whole body is there; `ended`: the connection is over."""
    if head.chunked:
        return answer.endswith(b"0\r\n\r\n")
    if head.length is None:
        return ended
    return len(answer) >= head.body_at + head.length
