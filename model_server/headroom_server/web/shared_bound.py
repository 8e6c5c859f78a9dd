"""Connections and arriving bytes: a bound for all, shared by the clients' addresses. Pure.

A client may hold as much as is free (Choudhury and Hahne, "Dynamic queue length thresholds", 1998):
one takes at most half of the bound, two a third each, and another one always finds room. Bytes
count from their arrival until their request is parsed; then they wait in the model's queue, which
has its own bound.
"""

from __future__ import annotations

from collections.abc import Callable

from headroom_server.errors import QueueFullError

LEAST_BYTES = 32 << 20


def receiving_bytes(max_body_bytes: int) -> int:
    """Return the default bound: one client may send two of the largest bodies at once."""
    return max(LEAST_BYTES, 4 * max_body_bytes)


class SharedBound:
    """A bound, and what each client address holds of it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self.returned = 0
        """The sum of what was given back since this was last set to zero."""
        self.freed: Callable[[], None] | None = None
        """Called when something was given back."""
        self._by_client: dict[str, int] = {}

    def fits(self, client: str, size: int) -> bool:
        """Return whether a client may hold this much more."""
        return size <= self.free(client)

    def free(self, client: str) -> int:
        """Return how much more a client may hold: not above 0 where it holds its share."""
        return self.most - self.held - self._by_client.get(client, 0)

    def take(self, client: str, size: int) -> None:
        """Count bytes, or a connection."""
        self.held += size
        self._by_client[client] = self._by_client.get(client, 0) + size

    def give_back(self, client: str, size: int) -> None:
        """Count them no longer."""
        self.held -= size
        self.returned += size
        left = self._by_client[client] - size
        if left:
            self._by_client[client] = left
        else:
            del self._by_client[client]
        if self.freed is not None:
            self.freed()


class Reservation:
    """Share that one request holds."""

    __slots__ = ("_client", "_receiving", "_size")

    def __init__(self, receiving: SharedBound, client: str) -> None:
        self._receiving = receiving
        self._client = client
        self._size = 0

    def check(self, size: int) -> None:
        """Check that this many bytes may arrive.

        Raises:
            QueueFullError: too many are arriving already.
        """
        if not self._receiving.fits(self._client, size):
            raise QueueFullError(
                f"requests that are arriving must have at most {self._receiving.most} bytes "
                "together, and those of one client at most as many as are free; retry later",
                retry_after_s=1,
            )

    def grow(self, size: int) -> None:
        """Count bytes that have arrived.

        Raises:
            QueueFullError: they are too many; none of them is counted.
        """
        self.check(size)
        self._receiving.take(self._client, size)
        self._size += size

    def shrink(self, size: int) -> None:
        """Give some of the counted bytes back."""
        self._receiving.give_back(self._client, size)
        self._size -= size

    def close(self) -> None:
        """Give everything back."""
        if self._size:
            self.shrink(self._size)
