"""`python -m reliability.attacks.hostile_pods`: one process is all hostile pods; prints its port.

Every page, every model's metadata and every warm-up answer is at its bound. What a pod does follows
from its address. The pods of the victims, in another range of addresses, answer as they should.

All answers are built before the first request: building a page takes as long as parsing it, so that
the attackers would take the CPU which the operator is measured on. The pages of a kind are this
many that the operator has forgotten a page's layout when the page comes again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from reliability.testbed.exporter import page

PAGE_BYTES = (1 << 18) - 1
METADATA_BYTES = (1 << 16) - 1
ANSWER_BYTES = (1 << 23) - 1
VICTIMS = "127.9."
"""Start of the addresses of well-behaved pods."""
VICTIM_MODEL = "victim"
PAGES_EACH = 24
"""Pages of one kind: 6 MiB, where the operator remembers layouts of 4 MiB."""
_new = itertools.count()
"""Makes every page one that was never seen."""


def _long_series() -> bytes:
    head = b'headroom_requests_waiting{model="m",x="%d' % next(_new)
    return head + b"x" * (PAGE_BYTES - len(head) - 6) + b'"} 1\n'


def _many(name: bytes) -> bytes:
    first = next(_new)
    line = b'%s{model="m",x="%d-%d"} 1\n'
    count = PAGE_BYTES // len(line % (name, first, 9999))
    return b"".join(line % (name, first, number) for number in range(count))


def _bounds() -> bytes:
    line = b'headroom_request_duration_seconds_bucket{model="m",le="%d.%d"} 1\n'
    first = next(_new)
    count = PAGE_BYTES // len(line % (9999, first)) - 1
    return b"".join(line % (number, first) for number in range(1, count)) + line % (10**9, 0)


def _wide_text() -> bytes:
    text = "# HELP a \U0001f600" + "x" * (PAGE_BYTES - 40) + f"\na {next(_new)}\n"
    return text.encode()


PAGES: tuple[Callable[[], bytes], ...] = (
    _long_series,
    lambda: _many(b"headroom_requests_waiting"),
    lambda: _many(b"of_another_server"),
    _bounds,
    _wide_text,
)


def built() -> list[bytes]:
    """Return all pages, those of each kind at equal distances."""
    return [make() for _ in range(PAGES_EACH) for make in PAGES]


def metadata() -> bytes:
    """Return the metadata of a model with as many inputs, elements and bytes as are read."""
    inputs = [
        {"name": f"{n}".ljust(150, "x"), "datatype": "FP32", "shape": [1, 4096 - 1 if n else 1]}
        for n in range(256)
    ]
    return json.dumps({"name": "m", "inputs": inputs}).encode()[:METADATA_BYTES]


METADATA, ANSWER = metadata(), b"x" * ANSWER_BYTES


class Connection(asyncio.Protocol):
    """One connection of the operator."""

    def __init__(self, served: list[int], pages: Sequence[bytes], turns: Counter[int]) -> None:
        self._served = served
        self._pages = pages
        self._turns = turns
        self._data = b""
        self._left = 0
        """Bytes of a request's body that are to come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember which pod this is."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address: str = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        """Answer whole requests; bodies are discarded."""
        if self._left:
            self._left -= min(self._left, len(data))
            if not self._left:
                self._answer(b"POST")
            return
        head, end, rest = (self._data + data).partition(b"\r\n\r\n")
        if not end:
            self._data = head
            return
        self._data = b""
        length = head.lower().partition(b"content-length: ")[2].split()
        self._left = max(0, int(length[0]) - len(rest)) if length else 0
        if not self._left:
            self._answer(head.partition(b"\r\n")[0])

    def _answer(self, asked: bytes) -> None:
        number = sum(map(int, self._address.split(".")))
        if self._address.startswith(VICTIMS):
            self._served[0] += 1
            self._write(page(VICTIM_MODEL, served=self._served[0]).encode())
        elif b"/metrics" in asked:
            kind = number % len(PAGES)
            self._turns[kind] += 1
            turn = self._turns[kind] % PAGES_EACH
            self._write(self._pages[turn * len(PAGES) + kind])
        elif asked.startswith(b"GET"):
            self._write(METADATA)
        elif number % 3 == 0:
            self._write(ANSWER)
        elif number % 3 == 1:
            self._write(ANSWER, b"500 x")
        # others are silent

    def _write(self, body: bytes, status: bytes = b"200 OK") -> None:
        kind = b"Content-Type: text/plain; version=0.0.4"
        head = b"HTTP/1.1 %s\r\n%s\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
        self._transport.writelines((head, body))


async def main() -> None:
    """Answer until killed."""
    served, pages, loop = [0], built(), asyncio.get_running_loop()
    turns = Counter[int]()
    server = await loop.create_server(
        lambda: Connection(served, pages, turns), "0.0.0.0", 0, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
