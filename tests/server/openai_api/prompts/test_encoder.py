"""Encoding of a call never waits for the constraints of other calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.constraint_owner import UNNAMED, Owner
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.token_grammar import TokenGrammar, TooComplexError
from headroom_server.openai_api.prompts.rendering import MOST_MESSAGES_AT_ONCE
from support.generation_front import FrontWorld, front
from support.server_world import until


class Anything:
    """A grammar that allows every token."""

    finished = False

    def allowed(self) -> memoryview:
        return memoryview(bytes([0xFF] * 64))

    def accept(self, token: int) -> bool:
        return True


class SlowGrammars:
    """Only "known" is compiled and "quick" takes no time; others take until they are released."""

    def __init__(self) -> None:
        self.compiling: list[str] = []
        self.free = threading.Event()

    def known(self, kind: str, text: str) -> TokenGrammar | None:
        return Anything() if text == "known" else None

    def compile(
        self, kind: str, text: str, *, quick: bool = False, owner: Owner = UNNAMED
    ) -> TokenGrammar:
        if text == "quick":
            return Anything()
        if quick:
            raise TooComplexError("a constraint that takes too much time to compile")
        self.compiling.append(text)
        assert self.free.wait(timeout=10)
        return Anything()


@asynccontextmanager
async def compiling() -> AsyncIterator[FrontWorld]:
    """A server that compiles a slow constraint until the end of the block."""
    grammars = SlowGrammars()
    text = ModelText(tokenizer=ByteTokenizer(), chat=PlainChat(), grammars=grammars)
    async with front(text=text) as world:
        try:
            task = asyncio.create_task(world.complete(guided_regex="new", max_tokens=1))
            await until(lambda: bool(grammars.compiling))
            async with asyncio.timeout(5):
                yield world
            assert not task.done()
            grammars.free.set()
            assert (await task).status_code == 200
        finally:
            grammars.free.set()


@pytest.mark.parametrize(
    "guided",
    [
        pytest.param({}, id="free"),
        pytest.param({"guided_regex": "known"}, id="known"),
        pytest.param({"guided_regex": "quick"}, id="quick"),
    ],
)
async def test_short_call_waits_for_no_slow_constraint_of_another_call(
    guided: dict[str, str],
) -> None:
    async with compiling() as world:
        answer = await world.complete(**guided, max_tokens=1)
        assert answer.status_code == 200, answer.text


async def test_long_chat_waits_for_no_constraint_of_another_call() -> None:
    async with compiling() as world:
        answer = await world.chat(*[""] * (MOST_MESSAGES_AT_ONCE + 1), max_tokens=1)
        assert answer.status_code == 200, answer.text
