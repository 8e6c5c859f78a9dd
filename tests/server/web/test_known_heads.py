"""Cached heads are found only if the parser would give the same result."""

from __future__ import annotations

import contextlib

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.web.inference.known_heads import LONGEST_BYTES, MOST_HEADS, Head, KnownHeads

HEAD = b"POST /v1/models/m:predict HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n"
SAID = Head("/v1/models/m:predict", {b"host": b"x", b"content-length": b"3"}, 3, keep_alive=True)


def taught(data: bytes, said: Head = SAID) -> KnownHeads:
    known = KnownHeads()
    known.learn(data, said)
    return known


def test_known_head_is_found_with_another_body() -> None:
    assert taught(HEAD + b"abc").split(HEAD + b"xyz") == (SAID, b"xyz")


@pytest.mark.parametrize(
    "data",
    [
        HEAD,
        HEAD + b"ab",
        HEAD + b"abcd",
        HEAD + b"abc" + HEAD + b"abc",
        HEAD[:-1],
        HEAD.replace(b"host: x", b"host: y") + b"abc",
        b"\r\n" + HEAD + b"abc",
        b"",
        b"\r\n\r\n",
    ],
)
def test_known_head_requires_one_whole_request(data: bytes) -> None:
    assert taught(HEAD + b"abc").split(data) is None


@pytest.mark.parametrize(
    "data",
    [
        HEAD.replace(b"host: x\r\n", b"host: x\n") + b"abc",
        HEAD + b"abcd",
        HEAD.replace(b"x\r\n", b"x" * LONGEST_BYTES + b"\r\n") + b"abc",
        HEAD.replace(b"\r\n\r\n", b"\n\r\n") + b"\r\n\r\n1",
    ],
)
def test_head_with_an_ambiguous_end_is_not_cached(data: bytes) -> None:
    assert len(taught(data)) == 0


def test_cached_heads_are_bounded_and_new_ones_still_learned() -> None:
    known = KnownHeads()
    for number in range(3 * MOST_HEADS):
        data = HEAD.replace(b"host: x", b"host: %d" % number) + b"abc"
        known.learn(data, SAID)
        assert known.split(data) == (SAID, b"abc")
        assert len(known) <= MOST_HEADS


class Said:
    """Result of the parser for some bytes."""

    def __init__(self, data: bytes) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.bodies: list[bytes] = []
        self.complete = 0
        self.url = b""
        self._parser = httptools.HttpRequestParser(self)
        with contextlib.suppress(httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.headers, self.url = {}, b""
        self.bodies.append(b"")

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self.bodies[-1] += body

    def on_message_complete(self) -> None:
        self.complete += 1


LINES = st.sampled_from(
    [b"host: x", b"Content-Length: 4", b"content-length: 6", b"a: b\tc", b" folded", b"x-tenant: t"]
)
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r"])
BODIES = st.text("\r\n{1", min_size=0, max_size=12).map(str.encode)


@given(
    lines=st.lists(st.tuples(LINES, ENDS), max_size=5),
    before=st.sampled_from([b"", b"\r\n", b"\r\n\r\n", b"\n"]),
    end=st.sampled_from([b"\r\n", b"\n", b"\r\n\r\n"]),
    first=BODIES,
    second=BODIES,
)
@settings(max_examples=500)
def test_known_head_equals_the_parsers_result(
    lines: list[tuple[bytes, bytes]], before: bytes, end: bytes, first: bytes, second: bytes
) -> None:
    head = before + b"POST /p HTTP/1.1\r\n" + b"".join(a + b for a, b in lines) + end
    said = Said(head + first)
    length = said.headers.get(b"content-length")
    if said.complete != 1 or len(said.bodies) != 1 or length is None:
        return
    known = taught(head + first, Head("/p", said.headers, int(length), keep_alive=True))
    found = known.split(head + second)
    if found is not None:
        again = Said(head + second)
        assert (again.complete, again.bodies) == (1, [found[1]])
        assert again.headers == found[0].headers
