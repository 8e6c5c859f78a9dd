"""Sends requests as streams, all at once or at their times, and measures until the last ends."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import aiohttp

from generation_peers.lengths import Question

PATIENCE_S = 1200.0
TOKENS = re.compile(rb'"completion_tokens": ?(\d+)')


class Round(NamedTuple):
    """Result of one server for all requests."""

    tokens: int
    wall_s: float
    cpu_s: float
    first_token_s: float
    """Median over the requests."""


class Answer(NamedTuple):
    """Answer to one request."""

    tokens: int
    first_token_s: float


class WrongAnswerError(Exception):
    """A server did not do the work that it was compared by; the message says what came back."""


async def ask(session: aiohttp.ClientSession, model: str, question: Question) -> Answer:
    """Stream one completion.

    Raises:
        WrongAnswerError: the answer has another length than asked for.
    """
    body = {
        "model": model,
        "prompt": question.prompt,
        "max_tokens": question.answer_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    began_s, first_s, usage = time.perf_counter(), 0.0, b""
    async with session.post("/v1/completions", json=body) as response:
        if response.status != 200:
            raise WrongAnswerError(f"status {response.status}: {(await response.text())[:300]}")
        async for chunk in response.content.iter_any():
            first_s = first_s or time.perf_counter() - began_s
            if b'"completion_tokens"' in chunk:
                usage = chunk
    found = TOKENS.findall(usage)
    if not found or int(found[-1]) != question.answer_tokens:
        raise WrongAnswerError(
            f"{question.answer_tokens} tokens asked for; usage is {usage[-300:]!r}"
        )
    return Answer(question.answer_tokens, first_s)


async def _all(
    url: str, model: str, questions: Sequence[Question], arrivals_s: Sequence[float]
) -> tuple[list[Answer], float]:
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, timeout=timeout, connector=connector) as session:
        began_s = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_ask_at(began_s + at_s, session, model, one))
                for one, at_s in zip(questions, arrivals_s, strict=True)
            ]
        return [task.result() for task in tasks], time.perf_counter() - began_s


async def _ask_at(
    at_s: float, session: aiohttp.ClientSession, model: str, question: Question
) -> Answer:
    await asyncio.sleep(at_s - time.perf_counter())
    return await ask(session, model, question)


def answers(
    url: str, model: str, questions: Sequence[Question], arrivals_s: Sequence[float]
) -> tuple[Sequence[Answer], float]:
    """Send each request at its time; return the answers, and the seconds until the last one.

    Raises:
        WrongAnswerError: an answer is not what was asked for.
    """
    try:
        return asyncio.run(_all(url, model, questions, arrivals_s))
    except ExceptionGroup as failures:
        raise WrongAnswerError(str(failures.exceptions[0])) from failures


def send(url: str, model: str, questions: Sequence[Question]) -> Round:
    """Send all requests at once; the CPU time is the caller's to fill in.

    Raises:
        WrongAnswerError: an answer is not what was asked for.
    """
    found, wall_s = answers(url, model, questions, [0.0] * len(questions))
    first_s = statistics.median(one.first_token_s for one in found)
    return Round(sum(one.tokens for one in found), wall_s, 0.0, first_s)
