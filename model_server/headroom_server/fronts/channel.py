"""Both ends of what lies between a front and the device process.

Frames go over a stream, one write per turn of the loop; large tensors through two shared memories,
of which each side writes one; connections themselves over a socket of their own.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import mmap
import os
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from headroom_server.fronts import wire
from headroom_server.fronts.arena import Arena
from headroom_server.fronts.frames import Frames, Kind
from headroom_server.fronts.wire import Blob

log = logging.getLogger("headroom_server")

ARENA_BYTES = 64 * 1024 * 1024
"""Of each direction. Pages that are never used take no memory."""
INLINE_BYTES = 16 * 1024
"""What is smaller travels in the frame: that is as cheap, and nothing has to be given back."""
_RETRY_S = 0.002
_KEY = struct.Struct("<Q")


class Ends(Protocol):
    """Who uses a channel."""

    def received(self, kind: int, payload: bytes) -> None:
        """A frame came."""

    def visited(self, visitor: socket.socket, retire_at_s: float, data: bytes) -> None:
        """A connection came, and what was read of its next request."""

    def flushing(self) -> None:
        """Frames are about to go: the last chance to add one."""

    def lost(self) -> None:
        """The other side is gone."""


class Memory:
    """A shared memory that this side writes."""

    def __init__(self, fd: int, size: int = ARENA_BYTES) -> None:
        self._map = mmap.mmap(fd, size)
        self._arena = Arena.of(size)

    def put(self, parts: Sequence[bytes]) -> Blob:
        """Small things, and what there is no room for, stay with the frame."""
        sizes = tuple(map(len, parts))
        total = sum(sizes)
        taken = self._arena.take(total) if total > INLINE_BYTES else None
        if taken is None:
            return Blob(sizes, wire.INLINE, b"".join(parts))
        self._arena, begin = taken
        at = begin
        for part in parts:
            self._map[at : at + len(part)] = part
            at += len(part)
        return Blob(sizes, begin)

    def give(self, begin: int, size: int) -> None:
        """A block was read by the other side."""
        self._arena = self._arena.give(begin, size)


class Channel(asyncio.Protocol):
    """One end."""

    _transport: asyncio.Transport

    def __init__(self, ends: Ends, out: int, incoming: int, visitors: socket.socket) -> None:
        """`out` and `incoming` are descriptors of memories, which are taken over."""
        self._ends = ends
        self._loop = asyncio.get_running_loop()
        self._out = Memory(out)
        self._incoming = memoryview(mmap.mmap(incoming, ARENA_BYTES, access=mmap.ACCESS_READ))
        os.close(out)
        os.close(incoming)
        self._visitors = visitors
        self._frames = Frames()
        self._waiting: list[bytes] = []
        self._keys = itertools.count()
        self._leaving: deque[tuple[int, int]] = deque()
        self._arrived: dict[int, socket.socket] = {}
        self._announced: dict[int, tuple[float, bytes]] = {}
        self.open = True
        visitors.setblocking(False)
        self._loop.add_reader(visitors.fileno(), self._receive_visitors)

    # ---- frames

    def send(self, frame: bytes) -> None:
        """With all others of this turn of the loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(frame)

    def put(self, parts: Sequence[bytes]) -> Blob:
        """Bytes for the other side."""
        return self._out.put(parts)

    def get(self, blob: Blob) -> list[memoryview]:
        """Bytes from the other side, to be read before anything else is done."""
        if blob.offset == wire.INLINE:
            whole = memoryview(blob.inline)
        else:
            whole = self._incoming[blob.offset : blob.offset + blob.total]
            # the frame leaves after this turn, in which the bytes are copied
            self.send(wire.release(blob))
        parts, at = [], 0
        for size in blob.sizes:
            parts.append(whole[at : at + size])
            at += size
        return parts

    def close(self) -> None:
        """End when all frames have gone."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if not self._waiting or not self.open:
            return
        self._ends.flushing()
        self._transport.write(b"".join(self._waiting))
        self._waiting.clear()

    # ---- connections

    def hand_over(self, transport: asyncio.Transport, retire_at_s: float, data: bytes) -> None:
        """Give a connection to the other side; it ends here, and for its client goes on.

        All that was written to it has left.
        """
        descriptor = os.dup(transport.get_extra_info("socket").fileno())
        transport.abort()
        key = next(self._keys)
        self.send(wire.visit(key, retire_at_s, self.put([data])))
        self._leaving.append((key, descriptor))
        if len(self._leaving) == 1:
            self._send_visitors()

    def _send_visitors(self) -> None:
        while self._leaving:
            key, descriptor = self._leaving[0]
            try:
                socket.send_fds(self._visitors, [_KEY.pack(key)], [descriptor])
            except BlockingIOError:
                self._loop.call_later(_RETRY_S, self._send_visitors)
                return
            except OSError as error:
                log.debug("a connection could not be handed over: %s", error)
            os.close(descriptor)
            self._leaving.popleft()

    def _receive_visitors(self) -> None:
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._visitors, _KEY.size, 1)
            except BlockingIOError:
                return
            except OSError:
                data, descriptors = b"", []
            if not data:
                self._loop.remove_reader(self._visitors.fileno())
                return
            if descriptors:
                key = int(_KEY.unpack(data)[0])
                self._arrived[key] = socket.socket(fileno=descriptors[0])
                self._join(key)

    def _join(self, key: int) -> None:
        if key in self._arrived and key in self._announced:
            retire_at_s, data = self._announced.pop(key)
            self._ends.visited(self._arrived.pop(key), retire_at_s, data)

    # ---- as the loop calls it

    def connection_made(self, transport: Any) -> None:
        """Both sides are there."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Frames, or pieces of them."""
        for kind, payload in self._frames.feed(data):
            if kind == Kind.RELEASE:
                self._out.give(*wire.read_release(payload))
            elif kind == Kind.VISIT:
                key, retire_at_s, blob = wire.read_visit(payload)
                (part,) = self.get(blob)
                self._announced[key] = (retire_at_s, bytes(part))
                self._join(key)
            else:
                self._ends.received(kind, payload)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has ended, or this one closes."""
        self._receive_visitors()  # those whose front left right after them
        self.open = False
        self._loop.remove_reader(self._visitors.fileno())
        self._visitors.close()
        for visitor in self._arrived.values():
            visitor.close()
        for _, descriptor in self._leaving:
            os.close(descriptor)
        self._leaving.clear()
        self._ends.lost()
