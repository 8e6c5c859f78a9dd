"""Calls and their messages: a bound for all clients, and a share for each.

A message's size is unknown until it is complete. So a call is read in its turn only, once the
bytes of the largest message fit; before, it holds no more than its window of flow control.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import unquote

from headroom_server.errors import InvalidRequestError, QueueFullError, SlowRequestError
from headroom_server.open_inference_grpc.read_turns import ReadTurns
from headroom_server.web.shared_bound import SharedBound


class MessageReads:
    """Admits calls, and reads their messages in turns."""

    def __init__(
        self, calls: SharedBound, receiving: SharedBound, max_message_bytes: int, within_s: float
    ) -> None:
        """`receiving` is shared with HTTP; a message must be complete within `within_s`."""
        self._calls = calls
        self._turns = ReadTurns(receiving, max_message_bytes)
        self._within_s = within_s

    @contextmanager
    def admitted(self, client: str) -> Iterator[None]:
        """Count a call.

        Raises:
            QueueFullError: too many are open; the message is not read.
        """
        if not self._calls.fits(client, 1):
            raise QueueFullError(
                f"at most {self._calls.most} calls may be open, and those of one client as many as "
                "are left; retry later",
                retry_after_s=1,
            )
        self._calls.take(client, 1)
        try:
            yield
        finally:
            self._calls.give_back(client, 1)

    @asynccontextmanager
    async def message(self, client: str, context: Any) -> AsyncIterator[bytes]:
        """Read a call's message; its bytes count until the block ends.

        Raises:
            SlowRequestError: it is not complete in time.
            InvalidRequestError: there is none.
        """
        try:
            async with asyncio.timeout(self._within_s) as timeout:
                await self._turns.take(client)
                try:
                    raw = await context.read()
                    timeout.reschedule(None)
                    if not isinstance(raw, bytes):
                        raise InvalidRequestError("a call must have one message; got none")
                    yield raw
                finally:
                    self._turns.give_back(client)
        except TimeoutError as error:
            raise SlowRequestError(
                f"the message must be complete within {self._within_s:g} s"
            ) from error


def client_of(context: Any) -> str:
    """Return the address of a call's client, without its port."""
    peer: str = context.peer()
    return unquote(peer.partition(":")[2].rpartition(":")[0]).strip("[]") or peer
