"""Answers that wait for their client: probabilities in parts, and text in parsers of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from headroom_server.errors import QueueFullError, RequestError
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.constraint_owner import UNNAMED, Owner
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.text.tool_calls import Call, ToolStyle
from headroom_server.generation.token_grammar import TokenGrammar
from headroom_server.generation.values import (
    Alternative,
    Delivery,
    FinishReason,
    GenerationRequest,
    SampledToken,
)
from headroom_server.openai_api.answers.choice_parts import AnswerContext
from headroom_server.openai_api.answers.completion_form import CompletionForm
from headroom_server.openai_api.answers.encoding import AnswerIdentity, Part
from headroom_server.openai_api.answers.held_parts import HeldParts
from headroom_server.openai_api.answers.streaming import StreamedAnswer
from headroom_server.openai_api.answers.unread import FEW_PROBABILITIES
from headroom_server.openai_api.bodies.parsing import parse_completion
from headroom_server.web.inference.response_stream import nothing
from headroom_server.web.shared_bound import Reservation, SharedBound
from support.generation_front import LIMITS, ScriptedExecutor, answers, front

TOKEN = SampledToken(97, -0.5, tuple(Alternative(98 + at, -1.0) for at in range(20)))
NAMED = Part("a", (TOKEN,))


async def test_probabilities_that_wait_for_the_answers_end_are_bounded() -> None:
    limits = LIMITS._replace(context_tokens=4096, blocks=256)
    async with front(ScriptedExecutor(limits=limits)) as world:
        many = {"n": 128, "max_tokens": 64, "logprobs": 20}
        refused = await world.complete(**many)
        streamed = await world.complete(**many | {"n": 16}, stream=True)
        unnamed = await world.chat(n=8, logprobs=True, top_logprobs=20)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "logprobs"
    assert streamed.status_code == unnamed.status_code == 200


async def test_collected_answers_are_bounded_in_sum() -> None:
    limits = LIMITS._replace(context_tokens=4096, blocks=1024, max_iteration_tokens=4096)
    executor = ScriptedExecutor(answers(b"x" * 2000), limits=limits)
    async with front(executor, max_unread_bytes=1 << 16) as world:
        refused = await world.complete(max_tokens=2000, logprobs=5)
        whole = await world.complete(max_tokens=2000)
        again = await world.complete(max_tokens=10, logprobs=5)
        echoed = [await world.complete("a" * 1500, max_tokens=2, n=n, echo=True) for n in (1, 16)]
        assert world.app.service.unread.held == 0
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert whole.status_code == again.status_code == 200
    assert [one.status_code for one in echoed] == [200, 429]
    assert world.outcomes() == {"ok": 3, "refused": 2}


async def test_answer_refused_for_its_size_as_the_engine_is_done_counts_as_refused() -> None:
    limits = LIMITS._replace(context_tokens=8192, blocks=1024, max_iteration_tokens=8192)
    async with front(ScriptedExecutor(limits=limits), max_unread_bytes=1 << 13) as world:
        refused = await world.complete("a" * 5000, max_tokens=1, echo=True)
        finished = world.generator.generation.finished
    assert refused.status_code == 429
    assert world.outcomes() == {"refused": 1}
    assert {str(name): count for name, count in finished.items() if count} == {"cancelled": 1}


@pytest.mark.parametrize(
    ("parts", "most", "expected"),
    [
        pytest.param([], 100, [], id="nothing"),
        pytest.param([(0, Part("a")), (0, Part("b"))], 1, [(0, "ab", 0)], id="text is one part"),
        pytest.param([(0, NAMED)] * 5, 42, [(0, "aa", 2)], id="two tokens of 21 fit"),
        pytest.param([(0, NAMED)] * 5, 1, [(0, "a", 1)], id="a first one that is too large"),
        pytest.param([(0, NAMED), (1, NAMED)], 21, [(0, "a", 1)], id="of all choices together"),
        pytest.param(
            [(1, Part("b", calls=((0, "c", Call("f", "{}")),)))], 0, [(1, "b", 0)], id="call"
        ),
    ],
)
def test_oldest_parts_are_taken_until_they_have_enough_probabilities(
    parts: list[tuple[int, Part]], most: int, expected: list[tuple[int, str, int]]
) -> None:
    held = HeldParts(2)
    added = sum(held.add(index, part) for index, part in parts)
    assert held.size == added
    taken = held.take(most)
    assert [(index, part.text, len(part.tokens)) for index, part in taken] == expected
    while held:
        held.take(most)
    assert held.size == 0


def test_held_text_costs_its_size_and_held_probabilities_their_objects() -> None:
    texts, named = HeldParts(1), HeldParts(1)
    for _ in range(1000):
        texts.add(0, Part("a"))
        named.add(0, NAMED)
    assert texts.size < 32 * 1000
    assert named.size > 2000 * 1000


class Reader:
    """A stream whose client reads nothing, or everything."""

    def __init__(self) -> None:
        self.on_writable: Callable[[], None] = nothing
        self.paused = True
        self.unsent_bytes = 0
        self.written: list[bytes] = []
        self.over = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def end(self, data: bytes = b"") -> None:
        self.written.append(data)
        self.over = True

    def abort(self) -> None:
        self.over = True

    async def wait(self) -> None: ...


def streamed(reader: Reader, unread: SharedBound, *, logprobs: int) -> StreamedAnswer:
    body = {"model": "m", "prompt": "a", "stream": True, "max_tokens": 9999, "logprobs": logprobs}

    def unexpected(error: RequestError | None = None) -> None:
        raise AssertionError(error)

    return StreamedAnswer(
        AnswerContext(
            call=parse_completion(orjson.dumps(body)),
            text=ModelText(tokenizer=ByteTokenizer(), chat=PlainChat()),
            form=CompletionForm(AnswerIdentity("id", 0, "m"), ByteTokenizer(), usage=False),
            requests=[GenerationRequest(key=1, prompt=(97,), max_tokens=9999)],
            echoes=[""],
            stop=lambda _: None,
        ),
        lambda: reader,
        Reservation(unread, "client"),
        Reservation(unread, "client"),
        unread_timeout_s=30.0,
        on_error=unexpected,
        on_over=lambda _: None,
        on_slow=unexpected,
        on_full=unexpected,
    )


def choices_of(data: bytes) -> list[dict[str, Any]]:
    lines = [line for line in data.split(b"\n") if line.startswith(b"data: {")]
    events = [orjson.loads(line[6:]) for line in lines]
    return [one["choices"][0] for one in events if "choices" in one]


def named(choices: list[dict[str, Any]]) -> int:
    return sum(len(one["logprobs"]["tokens"]) for one in choices if one["logprobs"])


async def test_probabilities_that_were_held_back_are_sent_in_parts_between_other_work() -> None:
    """5000 tokens with 20 alternatives each take 250 ms as JSON."""
    reader, unread = Reader(), SharedBound(64 << 20)
    answer = streamed(reader, unread, logprobs=20)
    for _ in range(5000):
        answer.receive(0, Delivery(1, (TOKEN,)))
    answer.receive(0, Delivery(1, (), FinishReason.LENGTH))
    assert unread.held > 5000 * 2000
    assert reader.written == []
    reader.paused = False
    reader.on_writable()
    while not reader.over:
        before, written = unread.held, len(reader.written)
        await asyncio.sleep(0)
        assert unread.held < before
        assert len(reader.written) == written + 1
    assert unread.held == 0
    assert max(named(choices_of(data)) for data in reader.written) * 21 <= FEW_PROBABILITIES
    choices = choices_of(b"".join(reader.written))
    assert "".join(one["text"] for one in choices) == "a" * 5000
    assert named(choices) == 5000
    assert choices[-1]["finish_reason"] == "length"


async def test_stream_that_fails_while_held_back_gives_its_text_and_few_probabilities() -> None:
    reader, unread = Reader(), SharedBound(64 << 20)
    answer = streamed(reader, unread, logprobs=20)
    for _ in range(1000):
        answer.receive(0, Delivery(1, (TOKEN,)))
    answer.receive(0, Delivery(1, (), FinishReason.SHUTDOWN))
    assert reader.over
    assert unread.held == 0
    (data,) = reader.written
    assert b'data: {"error"' in data
    choices = choices_of(data)
    assert "".join(one["text"] for one in choices) == "a" * 1000
    assert named(choices) == FEW_PROBABILITIES // 21


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


class ToolChat(PlainChat):
    takes_tools = True


class AnyText:
    """Compiles every constraint into a grammar that allows everything."""

    finished = False

    def known(self, kind: str, text: str) -> TokenGrammar:
        return self

    def compile(
        self, kind: str, text: str, *, quick: bool = False, owner: Owner = UNNAMED
    ) -> TokenGrammar:
        return self

    def allowed(self) -> memoryview:
        return memoryview(b"\xff" * 36)

    def accept(self, token: int) -> bool:
        return True


@pytest.mark.clock
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("style", "choice", "said"),
    [
        (ToolStyle.TAGGED, "auto", b'<tool_call>{"name":"f","arguments":{"a":"%b"}}</tool_call>'),
        (ToolStyle.JSON, "auto", b'{"name":"f","parameters":{"a":"%b"}}'),
        (ToolStyle.JSON, {"type": "function", "function": {"name": "f"}}, b'{"a":"%b"}'),
    ],
)
async def test_text_that_waits_for_the_end_of_a_call_is_bounded(
    style: ToolStyle, choice: object, said: bytes, stream: bool
) -> None:
    limits = LIMITS._replace(context_tokens=16384, blocks=2048, max_iteration_tokens=4096)
    executor = ScriptedExecutor(answers(said % (b"x" * 9000)), limits=limits)
    text = ModelText(
        tokenizer=ByteTokenizer(), chat=ToolChat(), tool_style=style, grammars=AnyText()
    )
    fields = {"tools": TOOLS, "tool_choice": choice, "stream": stream}
    async with front(executor, text=text, max_unread_bytes=1 << 15) as world:
        refused = await world.chat(**fields, max_tokens=9500)
        assert world.app.service.unread.held == 0
        short = await world.chat(**fields, max_tokens=100)
        assert world.app.service.unread.held == 0
    assert refused.status_code == (200 if stream else QueueFullError.status)
    assert b"answers that are incomplete are too large" in refused.content
    assert short.status_code == 200
    assert world.outcomes() == {"ok": 1, "refused": 1}
