"""Streams one completion of OpenAI's API and takes the times of its first and its last token."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import NamedTuple

import aiohttp

from load.outcomes import Outcome, of_status

PATH = "/v1/completions"
PREFIX, DONE = b"data:", b"[DONE]"
DETAIL_LENGTH = 120


class Streamed(NamedTuple):
    """End of a stream; times in seconds since the request."""

    outcome: Outcome
    detail: str = ""
    tokens: int = 0
    """Tokens of the answer, as the server counts them."""
    first_s: float | None = None
    last_s: float | None = None


async def stream(
    session: aiohttp.ClientSession, model: str, prompt: Sequence[int], tokens: int
) -> Streamed:
    """Ask for exactly this many tokens. Never raises for what the network does."""
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    began_s = time.perf_counter()
    try:
        async with session.post(PATH, json=body) as response:
            if response.status != 200:
                said = (await response.text())[:DETAIL_LENGTH]
                return Streamed(of_status(response.status), f"status {response.status}: {said}")
            return _judged(await _read(response, began_s), tokens)
    except aiohttp.ClientConnectorError as error:
        return _failed(Outcome.UNREACHABLE, error)
    except (aiohttp.ClientError, TimeoutError) as error:
        return _failed(Outcome.LOST, error)


async def _read(response: aiohttp.ClientResponse, began_s: float) -> Streamed:
    first_s = last_s = None
    counted, ended = 0, False
    async for line in response.content:
        if not line.startswith(PREFIX):
            continue
        data = line[len(PREFIX) :].strip()
        if data == DONE:
            ended = True
            break
        event = json.loads(data)
        if event.get("choices"):
            last_s = time.perf_counter() - began_s
            first_s = first_s or last_s
        if event.get("usage"):
            counted = int(event["usage"]["completion_tokens"])
        if event.get("error"):
            return Streamed(Outcome.FAILED, str(event["error"])[:DETAIL_LENGTH])
    if not ended:
        return Streamed(Outcome.LOST, "the stream ended early")
    return Streamed(Outcome.OK, "", counted, first_s, last_s)


def _judged(found: Streamed, tokens: int) -> Streamed:
    if found.outcome is Outcome.OK and found.tokens != tokens:
        detail = f"{tokens} tokens asked for; got {found.tokens}"
        return found._replace(outcome=Outcome.WRONG, detail=detail)
    return found


def _failed(outcome: Outcome, error: BaseException) -> Streamed:
    return Streamed(outcome, f"{type(error).__name__}: {error}"[:DETAIL_LENGTH])
