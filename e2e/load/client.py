"""A client with keep-alive connections: sends a request, checks the answer, names the outcome.

A server may close an idle connection just when a request is written to it. Where that happens
before any byte of an answer, on a connection that had been used before, the request is sent once
more on a fresh connection and counted as retried. A fresh connection without an answer is a loss.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import SimpleNamespace, TracebackType
from typing import Self

import aiohttp

from load.connections import Connections, Pool
from load.outcomes import Ending, Outcome, input_of, is_right, of_status, question

RETRY_HEADER = "x-stainless-retry-count"
"""Tries before this one, as the SDKs of OpenAI and Anthropic send it."""
DETAIL_LENGTH = 120
METADATA_TIMEOUT_S = 10.0
_HEADERS = {"content-type": "application/json"}


@dataclass(slots=True)
class Attempt:
    """Connection of one attempt, as far as it is known."""

    reused: bool = False


@dataclass(frozen=True, slots=True)
class _Try:
    """One try and its contents."""

    number: int
    body: bytes
    headers: Mapping[str, str]


class StaleConnectionError(Exception):
    """The connection had been closed while idle; no byte of an answer came."""


class Client:
    """Asks one model at one URL. Use as an async context manager."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        timeout_s: float,
        max_connections: int,
        connections: Connections | None = None,
    ) -> None:
        self._infer = f"{url.rstrip('/')}/v2/models/{model}/infer"
        self._metadata = f"{url.rstrip('/')}/v2/models/{model}"
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._max_connections = max_connections
        self._wanted = connections or Connections()
        self._stack = AsyncExitStack()
        self._tensor, self._row_size = "", 0
        self._pool: Pool | None = None
        self.connections = 0

    async def __aenter__(self) -> Self:
        """Open the sessions; no connection yet."""
        once = self._wanted.requests_each == 1
        limit = self._max_connections
        shared = self._session(aiohttp.TCPConnector(limit=limit, force_close=once))
        self._shared = await self._stack.enter_async_context(shared)
        fresh = self._session(aiohttp.TCPConnector(limit=0, force_close=True))
        self._fresh = await self._stack.enter_async_context(fresh)
        if self._wanted.limit is not None:
            self._pool = Pool(self._wanted.limit, self._wanted.requests_each, self._session)
            self._stack.push_async_callback(self._pool.close)
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
        return await self._on_a_connection(_Try(number, self._body(number), _HEADERS))

    async def attempt(self, number: int, earlier: int) -> Ending:
        """Send it as one try of several, the count of earlier ones in its header."""
        headers = {**_HEADERS, RETRY_HEADER: str(earlier)}
        return await self._on_a_connection(_Try(number, self._body(number), headers))

    def _body(self, number: int) -> bytes:
        return json.dumps(question(number, self._row_size, self._tensor)).encode()

    async def _on_a_connection(self, one: _Try) -> Ending:
        if self._pool is None:
            return await self._sent(self._shared, one)
        async with self._pool.session() as session:
            return await self._sent(session, one)

    async def _sent(self, session: aiohttp.ClientSession, one: _Try) -> Ending:
        try:
            return await self._exchange(session, one)
        except StaleConnectionError:
            ending = await self._exchange(self._fresh, one)
            return Ending(ending.outcome, ending.detail, retried=True)

    async def _exchange(self, session: aiohttp.ClientSession, one: _Try) -> Ending:
        attempt = Attempt()
        try:
            async with session.post(
                self._infer, data=one.body, headers=one.headers, trace_request_ctx=attempt
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
        return self._judged(one.number, status, answer)

    def _judged(self, number: int, status: int, answer: bytes) -> Ending:
        outcome = of_status(status)
        if outcome is not Outcome.OK:
            return Ending(outcome, f"status {status}{_reason(answer)}")
        try:
            right = is_right(number, self._row_size, json.loads(answer))
        except ValueError:
            right = False
        if right:
            return Ending(Outcome.OK)
        return Ending(Outcome.WRONG, f"answer {answer[:DETAIL_LENGTH]!r}")

    def _session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_note_reuse)
        tracing.on_connection_create_end.append(self._note_new)
        return aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, trace_configs=[tracing]
        )

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


def _reason(answer: bytes) -> str:
    """Return who refused and why, where the answer says it in `reason`."""
    try:
        said = json.loads(answer)
    except ValueError:
        return ""
    match said:
        case {"reason": str(reason)}:
            return f" ({reason[:DETAIL_LENGTH]})"
    return ""


def _ended(outcome: Outcome, error: BaseException) -> Ending:
    return Ending(outcome, f"{type(error).__name__}: {error}"[:DETAIL_LENGTH])
