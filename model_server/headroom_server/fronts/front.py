"""A front process: accepts, parses and answers, and asks the device process for outputs."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from typing import NamedTuple

import orjson

from headroom_server.fronts import catalogue, wire
from headroom_server.fronts.channel import Channel
from headroom_server.fronts.client_connection import Bounds, FrontConnection
from headroom_server.fronts.frames import Kind
from headroom_server.fronts.remote import Owed, RemoteCatalogue
from headroom_server.process import BACKLOG
from headroom_server.web.closing import Closing
from headroom_server.web.direct import Direct
from headroom_server.web.failures import failure_of
from headroom_server.web.inference import Inference

log = logging.getLogger("headroom_server")

LOOK_PERIOD_S = 0.5
FORSAKEN = 3
"""Exit code of a front whose device process is gone."""


class Opening(NamedTuple):
    """What a front is started with: descriptors that it inherits, and bounds on clients."""

    wire_version: int
    listener: int
    stream: int
    visitors: int
    out: int
    incoming: int
    bounds: Bounds

    def dumps(self) -> str:
        """As an argument of its command."""
        return orjson.dumps((*self[:-1], tuple(self.bounds))).decode()

    @staticmethod
    def loads(text: str) -> Opening:
        """The inverse.

        Raises:
            ValueError: where the other side is of another version.
        """
        version, *descriptors, bounds = orjson.loads(text)
        if version != wire.VERSION:
            raise ValueError(f"wire version {wire.VERSION}; got {version}")
        listener, stream, visitors, out, incoming = descriptors
        return Opening(version, listener, stream, visitors, out, incoming, Bounds(*bounds))


class Front:
    """One front process. It ends when it was told to and owes nothing, or when it is forsaken."""

    channel: Channel

    def __init__(self, bounds: Bounds) -> None:
        self.draining = self.crowded = False
        """As the device process said last."""
        self.connections: set[FrontConnection] = set()
        self.over = asyncio.Event()
        self._bounds = bounds
        self._owed = Owed(lambda: self.channel)
        self._catalogue = RemoteCatalogue(self._owed, lambda: self.channel)
        self._leaving = False
        self._listening: asyncio.Server | None = None
        inference = Inference(self._catalogue, bounds.max_body_bytes)
        self.direct = Direct(
            inference, Closing(self), failure_of, max_body_bytes=bounds.max_body_bytes
        )

    async def serve(self, listener: socket.socket) -> None:
        """Until it is over."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._accepted, sock=listener, backlog=BACKLOG)
        while not self.over.is_set():
            now_s = loop.time()
            for connection in list(self.connections):
                connection.look(now_s, 0.0 if self._leaving else self._bounds.idle_s)
            try:
                await asyncio.wait_for(self.over.wait(), LOOK_PERIOD_S)
            except TimeoutError:
                continue
        self.channel.close()

    # ---- connections

    def hand_over(self, transport: asyncio.Transport, retire_at_s: float, data: bytes) -> None:
        """To the device process."""
        self.channel.hand_over(transport, retire_at_s, data)

    def ended(self) -> None:
        """A connection is over."""
        if self._leaving and not self.connections:
            self.over.set()

    def visited(self, visitor: socket.socket, retire_at_s: float, data: bytes) -> None:
        """One that the device process gives back."""
        task = asyncio.get_running_loop().create_task(self._take_back(visitor, retire_at_s))
        task.add_done_callback(lambda done: done.exception())

    async def _take_back(self, visitor: socket.socket, retire_at_s: float) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: FrontConnection(self, retire_at_s), visitor)

    def _accepted(self) -> FrontConnection:
        age_s = self._bounds.max_age_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter
        return FrontConnection(self, asyncio.get_running_loop().time() + age_s)

    # ---- the channel

    def received(self, kind: int, payload: bytes) -> None:
        """A frame of the device process."""
        if kind == Kind.OUTPUTS:
            self._owed.outputs(payload)
        elif kind == Kind.ERROR:
            self._owed.error(payload)
        elif kind == Kind.STATE:
            self.draining, self.crowded = wire.read_state(payload)
        elif kind == Kind.CATALOGUE:
            self._catalogue.follow(catalogue.loads(payload))
        elif kind == Kind.REFUSE and self._listening is not None:
            self._listening.close()
        elif kind == Kind.LEAVE:
            self._leave()

    def flushing(self) -> None:
        """Nothing to add."""

    def lost(self) -> None:
        """Without the device process there is nothing to answer."""
        if not self.over.is_set():
            os._exit(FORSAKEN)

    def _leave(self) -> None:
        self._leaving = True
        now_s = asyncio.get_running_loop().time()
        for connection in list(self.connections):
            connection.look(now_s, -1.0)
        self.ended()


async def run(opening: Opening) -> None:
    """Serve until it is over."""
    front = Front(opening.bounds)
    front.channel = Channel(
        front, opening.out, opening.incoming, socket.socket(fileno=opening.visitors)
    )
    loop = asyncio.get_running_loop()
    stream = socket.socket(fileno=opening.stream)
    await loop.create_connection(lambda: front.channel, sock=stream)
    await front.serve(socket.socket(fileno=opening.listener))
    while front.channel.open:  # noqa: ASYNC110 - what was written has to leave
        await asyncio.sleep(0.005)
