"""The load of tokens: steps become requests, streams become times, answers are held to promises."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from load.outcomes import Outcome
from load.streams import Streamed, stream
from load.token_messages import (
    Answer,
    Began,
    Promises,
    TokenMessage,
    concluded,
    output_token_s,
    quantile,
    read,
    read_all,
    write,
)
from load.token_plan import Lengths, Step, Wanted, duration_s, requests, steps
from load.tokens import play
from support.loopback import Handler, on_loopback

LENGTHS = Lengths(prompt_tokens=40, output_tokens=10, vocabulary=50)


def answer(
    number: int = 0,
    first_s: float | None = 0.5,
    ended_s: float | None = 1.4,
    outcome: Outcome = Outcome.OK,
) -> Answer:
    return Answer(
        number=number,
        due_s=float(number),
        late_s=0.001,
        outcome=outcome,
        prompt_tokens=40,
        output_tokens=10,
        first_token_s=first_s,
        ended_s=ended_s,
    )


def test_steps_become_poisson_arrivals_with_drawn_lengths() -> None:
    wanted = steps("100x1,50x4")
    assert wanted == (Step(100, 1.0), Step(50, 4.0))
    assert duration_s(wanted) == 150.0
    sent = requests(wanted, LENGTHS, seed=3)
    early = sum(one.due_s < 100 for one in sent)
    assert early == pytest.approx(100, abs=40)
    assert len(sent) - early == pytest.approx(200, abs=56)
    assert sent == requests(wanted, LENGTHS, seed=3)
    assert all(20 <= len(one.prompt) <= 60 and 5 <= one.output_tokens <= 15 for one in sent)
    assert all(0 < token < 50 for one in sent for token in one.prompt)


@pytest.mark.parametrize("text", ["", "60", "60x", "x5", "0x3", "60x1;90x2", "-1x2"])
def test_a_text_without_steps_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="steps must be SECONDSxRATE"):
        steps(text)


def test_messages_are_read_as_they_were_written() -> None:
    said: list[TokenMessage] = [
        Began(unix_s=1.5, requests=2, duration_s=10.0),
        answer(),
        answer(1, None, None, Outcome.LOST),
        concluded([answer(ended_s=5.0)], Promises()),
    ]
    text = "\n".join(["a line of another program", *map(write, said), '{"kind":"answ'])
    assert read_all(text) == said
    with pytest.raises(ValueError, match="unknown fields"):
        read('{"kind":"began","when":1}')


def test_an_answer_keeps_its_promises_or_misses_one() -> None:
    one = answer(first_s=0.5, ended_s=1.4)
    assert one.output_token_s == pytest.approx(0.1)
    assert one.keeps(Promises(first_token_s=0.5, output_token_s=0.11))
    assert not one.keeps(Promises(first_token_s=0.4))
    assert not one.keeps(Promises(output_token_s=0.09))
    assert not answer(outcome=Outcome.WRONG).keeps(Promises())


def test_requests_without_an_answer_reach_into_the_percentiles() -> None:
    answers = [answer(number) for number in range(19)]
    promises = Promises(first_token_s=1.0, output_token_s=0.2)
    whole = concluded(answers, promises)
    assert (whole.within, whole.attainment, whole.output_tokens) == (19, 1.0, 190)
    assert whole.first_token_p95_s == 0.5
    assert whole.seconds == pytest.approx(18 + 1.4)
    lost = [answer(number, None, None, Outcome.REFUSED) for number in (19, 20)]
    half = concluded([*answers, *lost], promises)
    assert half.outcomes == {"ok": 19, "refused": 2}
    assert half.first_token_p95_s == half.output_token_p95_s == math.inf
    assert concluded([], promises).attainment is None


def test_quantiles_are_values_that_occurred() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert quantile([1.0], 0.99) == 1.0
    single = Answer(
        number=0, due_s=0, late_s=0, outcome=Outcome.OK, prompt_tokens=1, output_tokens=1,
        first_token_s=0.1, ended_s=0.1,
    )  # fmt: skip
    assert output_token_s([single], 0.5) is None


def served(handler: Handler, act: Callable[[aiohttp.ClientSession], Awaitable[None]]) -> None:
    """Serve completions in this process for as long as the client acts."""

    async def run() -> None:
        async with (
            on_loopback(handler, method="POST", path="/v1/completions") as url,
            aiohttp.ClientSession(url) as session,
        ):
            await act(session)

    asyncio.run(run())


def event(**fields: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(fields).encode()


async def in_order(request: web.Request) -> web.StreamResponse:
    """Answer as asked, the first token after 20 ms and each other after 10 ms."""
    asked = await request.json()
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for number in range(asked["max_tokens"]):
        await asyncio.sleep(0.01 if number else 0.02)
        await response.write(event(choices=[{"text": "a"}]))
    await response.write(event(choices=[], usage={"completion_tokens": asked["max_tokens"]}))
    await response.write(b"data: [DONE]\n\n")
    return response


async def too_short(request: web.Request) -> web.StreamResponse:
    text = event(choices=[{"text": "a"}], usage={"completion_tokens": 1}) + b"data: [DONE]\n\n"
    return web.Response(body=text)


async def cut_off(request: web.Request) -> web.StreamResponse:
    return web.Response(body=event(choices=[{"text": "a"}]))


async def refusing(request: web.Request) -> web.StreamResponse:
    return web.Response(status=429, text="full")


def test_every_request_of_a_plan_is_streamed_and_timed() -> None:
    said: list[object] = []
    wanted = [Wanted(0.0, (1, 2), 5), Wanted(0.01, (3,), 3)]

    async def act(session: aiohttp.ClientSession) -> None:
        answers = await play(session, "m", wanted, said.append)
        assert sorted(one.number for one in answers) == [0, 1]
        for one in answers:
            assert one.outcome is Outcome.OK
            assert one.output_tokens == wanted[one.number].output_tokens
            assert one.first_token_s is not None
            assert one.first_token_s >= 0.019
            assert (one.output_token_s or 0.0) >= 0.009
        assert said == answers

    served(in_order, act)


@pytest.mark.parametrize(
    ("handler", "outcome", "detail"),
    [
        (too_short, Outcome.WRONG, "2 tokens asked for; got 1"),
        (cut_off, Outcome.LOST, "the stream ended early"),
        (refusing, Outcome.REFUSED, "status 429: full"),
    ],
)
def test_a_stream_that_is_not_the_answer_says_why(
    handler: Handler, outcome: Outcome, detail: str
) -> None:
    found: list[Streamed] = []

    async def act(session: aiohttp.ClientSession) -> None:
        found.append(await stream(session, "m", (1,), 2))

    served(handler, act)
    assert [(one.outcome, one.detail) for one in found] == [(outcome, detail)]


def test_a_server_that_is_not_there_is_unreachable() -> None:
    async def act() -> Streamed:
        async with aiohttp.ClientSession("http://127.0.0.1:9") as session:
            return await stream(session, "m", (1,), 2)

    assert asyncio.run(act()).outcome is Outcome.UNREACHABLE
