"""Replicas that only take time, all in one process: `--ports` has one port per replica.

A replica answers up to `--batch` requests at once, in the order of their arrival. Without batching
its times are lognormal with a coefficient of variation of `--cv`; a request may say how long it
takes.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
from functools import partial
from typing import cast

import uvloop

from bench.server.loading import ANSWER, TAKES_HEADER

REPLY = (
    f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(ANSWER)}\r\n\r\n"
).encode() + ANSWER


def spread(chance: random.Random, cv: float) -> float:
    """Draw a lognormal factor with a mean of 1."""
    variance = math.log(1.0 + cv**2)
    return chance.lognormvariate(-variance / 2.0, math.sqrt(variance))


class Replica:
    """One device: a queue, and who takes from it."""

    def __init__(self, options: argparse.Namespace, seed: int) -> None:
        self.waiting: asyncio.Queue[tuple[asyncio.Transport, float | None]] = asyncio.Queue()
        self._options = options
        self._chance = random.Random(seed)

    async def work(self) -> None:
        """Answer until cancelled."""
        while True:
            taken = [await self.waiting.get()]
            while len(taken) < self._options.batch and not self.waiting.empty():
                taken.append(self.waiting.get_nowait())
            said = taken[0][1]
            seconds = self._seconds(len(taken)) if said is None else said
            if seconds:
                await asyncio.sleep(seconds)
            for transport, _ in taken:
                if not transport.is_closing():  # else the client has left
                    transport.write(REPLY)

    def _seconds(self, items: int) -> float:
        mean: float = self._options.fixed + self._options.per_item * items
        return mean * spread(self._chance, self._options.cv) if self._options.cv else mean


class Intake(asyncio.Protocol):
    """One connection: a request is put into the queue once its body is there."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where the answer goes."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Collect one request; clients send the next after its answer."""
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        head = head.lower()
        length = int(_value(head, b"content-length: ") or 0)
        if separator and len(body) >= length and self._transport is not None:
            self._buffer = body[length:]
            takes = _value(head, f"{TAKES_HEADER}: ".encode())
            self._replica.waiting.put_nowait((self._transport, float(takes) if takes else None))


def _value(head: bytes, name: bytes) -> bytes:
    return head.partition(name)[2].partition(b"\r\n")[0]


async def serve(options: argparse.Namespace) -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    workers = []
    for number, port in enumerate(options.ports):
        replica = Replica(options, number)
        workers.append(asyncio.create_task(replica.work()))
        await loop.create_server(partial(Intake, replica), "127.0.0.1", port)
    await asyncio.gather(*workers)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", type=int, nargs="+", required=True)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--fixed", type=float, default=0.0, help="seconds")
    parser.add_argument("--per-item", type=float, default=0.0, help="seconds")
    parser.add_argument("--cv", type=float, default=0.0)
    uvloop.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
