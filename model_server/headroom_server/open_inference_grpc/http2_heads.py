"""The heads of an HTTP/2 connection, which are passed on when they are complete. Pure.

A head begins with a HEADERS frame, and goes on in CONTINUATION frames until one says that it ends
(RFC 9113, 6.10). gRPC's library bounds the headers of each frame, and keeps those of all frames:
a connection whose head never ends takes 35 MiB a second. It keeps each field of a head that ends.
"""

from __future__ import annotations

from headroom_server.open_inference_grpc.hpack_fields import count_fields
from headroom_server.web.connections.http_refusals import MAX_HEADERS
from headroom_server.web.shared_bound import SharedBound

HEAD_BYTES = 64 * 1024
PREFACE_BYTES = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
FRAME_HEAD_BYTES = 9
MOST_FRAMES = 8
"""Frames of one head. Clients send 16 KiB in each; many small ones evade the library's bound."""
HEADERS, CONTINUATION = 1, 9
END_HEADERS, PADDED, PRIORITY = 4, 8, 32
PRIORITY_BYTES = 5


class Http2Heads:
    """Holds back the bytes of a head that has not ended; `close` it at the end."""

    __slots__ = ("_client", "_counted", "_held", "_receiving", "_rest")

    def __init__(self, receiving: SharedBound, client: str) -> None:
        """`receiving` bounds the held bytes of all connections."""
        self._receiving, self._client, self._counted = receiving, client, 0
        self._rest = PREFACE_BYTES
        """Bytes to come of what is passed on already."""
        self._held = bytearray()
        """Bytes that are not passed on, from the beginning of a frame."""

    def passed(self, data: bytes) -> bytes | None:
        """Return the bytes to pass on after these arrived; None if a head exceeds a bound."""
        begun = len(data)
        if begun <= self._rest:  # within a frame of data
            self._rest -= begun
            return data
        begun, self._rest = self._rest, 0
        self._held += data[begun:]
        end = self._end()
        if end is None:
            return None
        self._rest = max(0, end - len(self._held))
        out = data[:begun] + self._held[:end]
        del self._held[:end]
        return out if self._counts() else None

    def close(self) -> None:
        """Count nothing more."""
        if self._counted:
            self._receiving.give_back(self._client, self._counted)
            self._counted = 0

    def _end(self) -> int | None:
        """Return where the last frame ends that may be passed on; None if a head is too large."""
        held, begin, at, frames = self._held, 0, 0, 0
        while at + FRAME_HEAD_BYTES <= len(held):
            size, kind, flags = int.from_bytes(held[at : at + 3]), held[at + 3], held[at + 4]
            at += FRAME_HEAD_BYTES + size
            if kind not in (HEADERS, CONTINUATION):
                if frames:
                    return None  # nothing else may come within a head
                begin = at
                continue
            frames += 1
            if at - begin > HEAD_BYTES or frames > MOST_FRAMES:
                return None
            if flags & END_HEADERS and at <= len(held):
                if not _fits(held[begin:at]):
                    return None
                begin, frames = at, 0
        return begin

    def _counts(self) -> bool:
        """Count the held bytes; return whether they are within the client's share."""
        counted = len(self._held) if len(self._held) > FRAME_HEAD_BYTES else 0
        if counted > self._counted and not self._receiving.fits(
            self._client, counted - self._counted
        ):
            return False
        self.close()
        if counted:
            self._receiving.take(self._client, counted)
            self._counted = counted
        return True


def _fits(head: bytearray) -> bool:
    """Return whether the frames of a head have no more fields than a head of HTTP/1.1 may have."""
    flags, at = head[4], FRAME_HEAD_BYTES + int.from_bytes(head[:3])
    block = head[FRAME_HEAD_BYTES:at]
    if flags & PADDED and block:
        del block[len(block) - block[0] :], block[0]
    if flags & PRIORITY:
        del block[:PRIORITY_BYTES]
    while at < len(head):
        begin = at + FRAME_HEAD_BYTES
        at = begin + int.from_bytes(head[at : at + 3])
        block += head[begin:at]
    try:
        return count_fields(block, MAX_HEADERS) <= MAX_HEADERS
    except IndexError:
        return False
