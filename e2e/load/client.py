"""A client with keep-alive connections: sends a request, checks the answer, names the outcome.

A server may close an idle connection just when a request is written to it. Where that happens
before any byte of an answer, on a connection that had been used before, the request is sent once
more on a fresh connection and counted as retried. A fresh connection without an answer is a loss.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import SimpleNamespace, TracebackType
from typing import Self

import aiohttp

from load.outcomes import Outcome, input_of, is_right, of_status, question

DETAIL_LENGTH = 120
METADATA_TIMEOUT_S = 10.0


@dataclass(slots=True)
class Attempt:
    """What is known about the connection of one attempt."""

    reused: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ended for the client."""

    outcome: Outcome
    detail: str = ""
    retried: bool = False


class StaleConnectionError(Exception):
    """The connection had been closed while idle; no byte of an answer came."""


class Client:
    """Asks one model at one URL. Use as an async context manager."""

    def __init__(self, url: str, model: str, *, timeout_s: float, max_connections: int) -> None:
        self._infer = f"{url.rstrip('/')}/v2/models/{model}/infer"
        self._metadata = f"{url.rstrip('/')}/v2/models/{model}"
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._max_connections = max_connections
        self._stack = AsyncExitStack()
        self._tensor, self._row_size = "", 0
        self.connections = 0

    async def __aenter__(self) -> Self:
        """Open the sessions; no connection yet."""
        self._kept = await self._session(aiohttp.TCPConnector(limit=self._max_connections))
        self._fresh = await self._session(aiohttp.TCPConnector(limit=0, force_close=True))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close every connection."""
        await self._stack.aclose()

    async def learn_input(self) -> None:
        """Read from the server what the model takes.

        Raises:
            ValueError: it cannot be asked by this generator.
            aiohttp.ClientError, TimeoutError: the server did not answer.
        """
        timeout = aiohttp.ClientTimeout(total=METADATA_TIMEOUT_S)
        async with self._fresh.get(self._metadata, timeout=timeout) as response:
            if response.status != 200:
                raise ValueError(f"{self._metadata} answers {response.status}, expected 200")
            self._tensor, self._row_size = input_of(await response.json())

    async def ask(self, number: int) -> Ending:
        """Send request `number` and see how it ends. Never raises for what the network does."""
        body = json.dumps(question(number, self._row_size, self._tensor)).encode()
        try:
            return await self._attempt(self._kept, body, number)
        except StaleConnectionError:
            ending = await self._attempt(self._fresh, body, number)
            return Ending(ending.outcome, ending.detail, retried=True)

    async def _attempt(self, session: aiohttp.ClientSession, body: bytes, number: int) -> Ending:
        attempt = Attempt()
        headers = {"content-type": "application/json"}
        try:
            async with session.post(
                self._infer, data=body, headers=headers, trace_request_ctx=attempt
            ) as response:
                status, answer = response.status, await response.read()
        except aiohttp.ClientConnectorError as error:
            return _ended(Outcome.UNREACHABLE, error)
        except aiohttp.ConnectionTimeoutError as error:
            return _ended(Outcome.UNREACHABLE, error)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if attempt.reused and not _answer_began(error):
                raise StaleConnectionError from error
            return _ended(Outcome.LOST, error)
        except (aiohttp.ClientError, TimeoutError) as error:
            return _ended(Outcome.LOST, error)
        return self._judged(number, status, answer)

    def _judged(self, number: int, status: int, answer: bytes) -> Ending:
        outcome = of_status(status)
        if outcome is not Outcome.OK:
            return Ending(outcome, f"status {status}")
        try:
            right = is_right(number, self._row_size, json.loads(answer))
        except ValueError:
            right = False
        if right:
            return Ending(Outcome.OK)
        return Ending(Outcome.WRONG, f"answer {answer[:DETAIL_LENGTH]!r}")

    async def _session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_note_reuse)
        tracing.on_connection_create_end.append(self._note_new)
        session = aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, trace_configs=[tracing]
        )
        return await self._stack.enter_async_context(session)

    async def _note_new(
        self,
        _session: aiohttp.ClientSession,
        _context: SimpleNamespace,
        _params: aiohttp.TraceConnectionCreateEndParams,
    ) -> None:
        self.connections += 1


async def _note_reuse(
    _session: aiohttp.ClientSession,
    context: SimpleNamespace,
    _params: aiohttp.TraceConnectionReuseconnParams,
) -> None:
    if isinstance(context.trace_request_ctx, Attempt):
        context.trace_request_ctx.reused = True


def _answer_began(error: aiohttp.ClientError) -> bool:
    """Return whether a response had begun when the connection closed: the error then holds it."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _ended(outcome: Outcome, error: BaseException) -> Ending:
    return Ending(outcome, f"{type(error).__name__}: {error}"[:DETAIL_LENGTH])
