"""The `openai` client, unchanged, against a server process with an emulated executor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest

from support.server_process import Server, serving

pytestmark = pytest.mark.clock


@asynccontextmanager
async def client(**settings: object) -> AsyncIterator[tuple[openai.AsyncOpenAI, Server]]:
    defaults: dict[str, object] = {"ENGINE": "generation-emulated", "EMULATED_FIXED_COST_S": 0.001}
    async with serving(**{**defaults, **settings}) as server:
        await server.ready()
        async with openai.AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="none", max_retries=0
        ) as api:
            yield api, server


async def test_client_lists_completes_chats_and_streams() -> None:
    async with client() as (api, _):
        assert [model.id async for model in api.models.list()] == ["m"]
        completion = await api.completions.create(model="m", prompt="Once", max_tokens=8)
        assert len(completion.choices[0].text) == 8
        assert completion.usage is not None
        assert completion.usage.completion_tokens == 8
        chat = await api.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], max_completion_tokens=8
        )
        stream = await api.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            max_completion_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert text == chat.choices[0].message.content
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8


async def test_client_raises_its_own_errors_with_the_field() -> None:
    async with client() as (api, _):
        with pytest.raises(openai.NotFoundError) as unknown:
            await api.completions.create(model="x", prompt="a")
        with pytest.raises(openai.BadRequestError) as long:
            await api.completions.create(model="m", prompt="a" * 9000)
        with pytest.raises(openai.BadRequestError) as extra:
            await api.completions.create(model="m", prompt="a", extra_body={"shout": True})
    assert unknown.value.code == "model_not_found"
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "prompt")
    assert (extra.value.code, extra.value.param) == ("unknown_parameter", "shout")


async def test_client_that_leaves_a_stream_frees_its_memory_at_once() -> None:
    async with client(EMULATED_FIXED_COST_S=0.01) as (api, server):
        stream = await api.completions.create(model="m", prompt="a", max_tokens=4000, stream=True)
        async for _ in stream:
            break
        await stream.close()
        await server.shows("requests_total", 1, outcome="cancelled")
        await server.shows("kv_blocks", 0, state="used")


async def test_client_sends_no_request_again_whose_deadline_has_passed() -> None:
    sent = list[object]()

    async def count(request: object) -> None:
        sent.append(request)

    async with (
        client(EMULATED_FIXED_COST_S=0.1) as (_, server),
        openai.DefaultAsyncHttpxClient(event_hooks={"request": [count]}) as web,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", http_client=web) as api,
    ):
        with pytest.raises(openai.InternalServerError) as late:
            await api.completions.create(
                model="m",
                prompt="a",
                max_tokens=100,
                extra_headers={"x-request-timeout": "0.2"},
            )
    assert (late.value.status_code, late.value.code) == (504, "deadline_exceeded")
    assert len(sent) == 1
