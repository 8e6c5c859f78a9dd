"""A worker thread: clients take turns, what waits is bounded, who left is left out."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from headroom_server.connection import Connection
from headroom_server.errors import DisconnectedError, QueueFullError
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.values import Sampling
from headroom_server.openai_api.bodies.parameters import ChatCall, Choices
from headroom_server.openai_api.prompts.encoder import SLOW_CPU_S, PromptEncoder
from headroom_server.openai_api.prompts.rendering import MOST_MESSAGES_AT_ONCE
from headroom_server.openai_api.prompts.worker_turns import MOST_WAITING, WorkerTurns
from support.generation_front import front


class Held:
    """Work that stays on the thread until it is released."""

    def __init__(self) -> None:
        self.free = threading.Event()

    def __call__(self) -> str:
        assert self.free.wait(timeout=10)
        return "held"


def worker(most_waiting: int = MOST_WAITING) -> WorkerTurns:
    return WorkerTurns("worker", "prompts", most_waiting)


async def test_client_with_one_prompt_waits_for_one_of_each_other_client() -> None:
    turns, held, order = worker(), Held(), list[str]()

    async def ask(client: str) -> None:
        order.append(await turns.run(Connection(client=client), "", lambda: client))

    first = asyncio.create_task(turns.run(Connection(client="flood"), "", held))
    await asyncio.sleep(0)
    others = [asyncio.create_task(ask(client)) for client in ["flood"] * 20 + ["a"]]
    await asyncio.sleep(0)
    held.free.set()
    await asyncio.gather(first, *others)
    assert order.index("a") <= 1
    assert turns.waiting == 0


@pytest.mark.parametrize(
    ("tenants", "expected"),
    [
        pytest.param(["one"] * 24, 8, id="a tenant: as much as its client has free"),
        pytest.param([f"invented {n}" for n in range(24)], 12, id="all tenants of a client: half"),
        pytest.param(["one"] * 24 + ["two"] * 24, 11, id="a second tenant finds room"),
    ],
)
async def test_client_and_its_tenants_may_wait_with_as_much_as_is_free(
    tenants: list[str], expected: int
) -> None:
    turns, held = worker(most_waiting=24), Held()
    flood = Connection(client="flood")
    waiting = [asyncio.create_task(turns.run(flood, tenant, held)) for tenant in tenants]
    await asyncio.sleep(0)
    assert turns.waiting == expected
    with pytest.raises(QueueFullError, match="prompts are too many"):
        await turns.run(flood, tenants[-1], held)
    another = asyncio.create_task(turns.run(Connection(client="a"), "", lambda: "done"))
    held.free.set()
    assert await another == "done"
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(one == "held" for one in found) == expected
    assert turns.waiting == 0


async def test_nothing_is_done_for_clients_that_have_left() -> None:
    turns, held = worker(), Held()
    first = asyncio.create_task(turns.run(Connection(client="a"), "", held))
    await asyncio.sleep(0)
    leaver, done = Connection(client="b"), list[str]()
    left = asyncio.create_task(turns.run(leaver, "", lambda: done.append("for a client that left")))
    await asyncio.sleep(0)
    leaver.lost()
    held.free.set()
    assert await first == "held"
    with pytest.raises(DisconnectedError):
        await left
    assert not done


class Rendering(PlainChat):
    """Notes on which threads it renders."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def render(self, messages: Sequence[Mapping[str, Any]], **given: Any) -> str:
        self.threads.append(threading.current_thread().name.partition("_")[0])
        return super().render(messages, **given)


@pytest.mark.parametrize("stream", [False, True])
async def test_short_body_of_many_messages_is_rendered_on_the_thread(stream: bool) -> None:
    """A template takes 35 us for each: 470 empty messages held up all other answers for 16 ms."""
    chat = Rendering()
    async with front(text=ModelText(tokenizer=ByteTokenizer(), chat=chat)) as world:
        for count in (MOST_MESSAGES_AT_ONCE, MOST_MESSAGES_AT_ONCE + 1):
            answer = await world.chat(*[""] * count, stream=stream, max_tokens=1)
            assert answer.status_code == 200, answer.text
    assert chat.threads == ["MainThread", "tokenizer"]


class SlowRendering(Rendering):
    """Takes long whatever it renders."""

    def render(self, messages: Sequence[Mapping[str, Any]], **given: Any) -> str:
        until_s = time.thread_time() + 1.2 * SLOW_CPU_S
        while time.thread_time() < until_s:
            pass
        return super().render(messages, **given)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/tokenize"])
async def test_template_that_was_slow_once_is_rendered_on_the_thread(path: str) -> None:
    chat = SlowRendering()
    async with front(text=ModelText(tokenizer=ByteTokenizer(), chat=chat)) as world:
        for _ in range(3):
            answer = await world.post(path, messages=[{"role": "user", "content": "a"}])
            assert answer.status_code == 200, answer.text
    assert chat.threads == ["MainThread", "tokenizer", "tokenizer"]


async def test_fast_path_of_streams_takes_no_long_ones() -> None:
    choices = Choices(sampling=Sampling(), stream=True)

    def call(messages: int) -> ChatCall:
        messages_of = ({"role": "user", "content": ""},) * messages
        return ChatCall(model="m", messages=messages_of, choices=choices, template_options={})

    slow = ModelText(tokenizer=ByteTokenizer(), chat=SlowRendering())
    async with front() as world:
        encoder = PromptEncoder(world.generator, slow, "m")
        assert not encoder.takes_long(call(MOST_MESSAGES_AT_ONCE))
        assert encoder.takes_long(call(MOST_MESSAGES_AT_ONCE + 1))
        encoder.encode_short(call(1))
        assert encoder.takes_long(call(1))
