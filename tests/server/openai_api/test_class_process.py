"""Two classes on a real server: started and read as the operator starts and reads it."""

from __future__ import annotations

import asyncio

import aiohttp

from headroom.controller.decide.class_slo import NO_CLASSES
from headroom.controller.gather.metrics.metrics_reader import samples_of
from headroom.resources import slo_classes
from support.server_process import serving
from support.service_world import service

SERVICE = service(
    spec__model={"name": "m"},
    spec__slo={
        "timeToFirstToken": {"target": "2s"},
        "timePerOutputToken": {"percentile": 90, "target": "50ms"},
    },
    spec__routing={
        "classes": [
            {"name": "chat", "priority": 1, "timeToFirstToken": {"target": "1s"}},
            {"name": "batch", "bestEffort": True},
        ]
    },
)
SETTINGS = {
    name.removeprefix("HEADROOM_"): value for name, value in slo_classes.settings(SERVICE).items()
}


async def test_chat_keeps_its_promise_while_best_effort_requests_fill_the_server() -> None:
    async with (
        serving(
            ENGINE="generation-emulated",
            EMULATED_FIXED_COST_S=0.004,
            EMULATED_PER_ITEM_COST_S=0.0005,
            **SETTINGS,
        ) as server,
        aiohttp.ClientSession() as http,
    ):
        await server.ready()

        async def page() -> str:
            async with http.get(f"{server.url}/metrics") as answer:
                return await answer.text()

        async def ask(tokens: int, name: str) -> int:
            body = {"model": "m", "prompt": "x" * 50, "max_tokens": tokens, "ignore_eos": True}
            headers = {"x-slo-class": name} if name else {}
            url = f"{server.url}/v1/completions"
            async with http.post(url, json=body, headers=headers) as answer:
                await answer.read()
                return answer.status

        samples = samples_of(SERVICE, None)
        assert samples.take(await page(), pod="u", time_s=1.0) is not None
        promises = SERVICE.spec.class_promises
        slo = NO_CLASSES.observe(promises, samples.readings, 1.0, counted=True)
        floods = [asyncio.create_task(ask(400, "batch")) for _ in range(60)]
        await asyncio.sleep(0.3)
        chats = await asyncio.gather(*(ask(20, "chat") for _ in range(10)), ask(20, ""))
        assert set(chats) == {200}
        sample = samples.take(await page(), pod="u", time_s=3.0)
        for flood in floods:
            flood.cancel()
        await asyncio.gather(*floods, return_exceptions=True)
    assert sample is not None
    assert (sample.arrivals, sample.missed, sample.waiting + sample.running) == (11, 0, 0)
    assert sample.latency.counts[-1] == 11
    state = slo.observe(promises, samples.readings, 3.0, counted=True).state
    assert state.has_best_effort
    assert state.best_effort_in_flight > 20, "best-effort requests are in flight, and are no load"
    assert state.judgement is not None
    own, chat = state.judgement.classes
    assert (own.requests, chat.requests) == (1, 10)
    assert chat.attainment == own.attainment == 1.0
