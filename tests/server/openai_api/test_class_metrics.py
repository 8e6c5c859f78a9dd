"""Metrics of the classes that clients of a generating server name, as the operator reads them."""

from __future__ import annotations

import asyncio

import pytest

from headroom.profiles import PROFILES
from headroom.profiles.best_effort import without_best_effort
from headroom.telemetry.errors import InvalidMetric
from headroom.telemetry.samples.pod_samples import PodSamples
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.protocols.request_options import SloClass
from headroom_server.runtime.generating.generation_requests import GeneratorOptions
from support.generation_front import ScriptedExecutor, front

CLASSES = {"chat": SloClass(priority=1), "batch": SloClass(batch=True)}
ASKED = {"model": "m", "prompt": "abc"}
INVALID = "headroom_time_to_first_token_seconds_bucket"


async def test_operator_reads_the_requests_of_each_class() -> None:
    executor = ScriptedExecutor()
    options = GeneratorOptions(classes=CLASSES)
    scheduling = SchedulingOptions(max_waiting_requests=2)
    samples = PodSamples(PROFILES["headroom"], "m")
    async with front(executor, options=options, scheduling=scheduling) as world:

        async def ask(count: int, name: str = "") -> list[int]:
            headers = {"x-slo-class": name} if name else {}
            each = [
                world.http.post("/v1/completions", json=ASKED, headers=headers)
                for _ in range(count)
            ]
            return [one.status_code for one in await asyncio.gather(*each)]

        plain = (await world.http.get("/metrics")).text
        await ask(1)
        assert await ask(2, "chat") == [200, 200]
        executor.hold()
        held = asyncio.create_task(ask(40, "batch"))
        await asyncio.sleep(0.2)
        executor.free.set()
        refused = (await held).count(429)
        page = (await world.http.get("/metrics")).text
    sample = samples.take(plain, pod="u", time_s=1.0)
    assert samples.readings["u"].classes == {}, "no request has named a class"
    sample = samples.take(page, pod="u", time_s=3.0)
    assert sample is not None
    found = samples.readings["u"].classes
    assert refused > 0
    assert {name: one.missed for name, one in found.items()} == {
        "": 0,
        "chat": 0,
        "batch": refused,
    }
    answered = {"": 1, "chat": 2, "batch": 40 - refused}
    for name, count in answered.items():
        one = found[name]
        for histogram in (one.first_token, one.output_token, one.latency):
            assert histogram is not None
            assert histogram.counts[-1] == count
    assert sample.arrivals == 43
    assert sample.missed == refused
    assert sample.latency.counts[-1] == sum(answered.values())
    assert sample.generation is not None
    assert sample.generation.output_lengths is not None
    assert sample.generation.output_lengths.counts[-1] >= sum(answered.values())


async def test_more_classes_than_a_page_may_have_are_counted_together() -> None:
    classes = {f"class-{number}": SloClass() for number in range(18)}
    async with front(options=GeneratorOptions(classes=classes)) as world:
        for name in classes:
            await world.http.post("/v1/completions", json=ASKED, headers={"x-slo-class": name})
        page = (await world.http.get("/metrics")).text
    samples = PodSamples(PROFILES["headroom"], "m")
    samples.take(page, pod="u", time_s=1.0)
    found = samples.readings["u"].classes
    assert len(found) == 18, "sixteen classes, the others, and requests without one"
    assert found["other"].latency is not None
    assert found["other"].latency.counts[-1] == 2


async def test_page_of_too_many_classes_is_refused() -> None:
    async with front(options=GeneratorOptions(classes=CLASSES)) as world:
        await world.http.post("/v1/completions", json=ASKED, headers={"x-slo-class": "chat"})
        page = (await world.http.get("/metrics")).text
    lines = page.splitlines()
    named = [one for one in lines if one.startswith(INVALID) and 'class="chat"' in one]
    more = [one.replace("chat", f"c{number}") for number in range(40) for one in named]
    with pytest.raises(InvalidMetric, match="at most 32 values of class"):
        PodSamples(PROFILES["headroom"], "m").take(
            "\n".join([*lines, *more]) + "\n", pod="u", time_s=1.0
        )


async def test_load_of_the_others_is_read_without_classes_that_fill() -> None:
    executor = ScriptedExecutor()
    options = GeneratorOptions(classes=CLASSES, bounds_batch_classes=True)
    async with front(executor, options=options) as world:

        async def ask(name: str, prompt: str) -> int:
            body, headers = {**ASKED, "prompt": prompt}, {"x-slo-class": name} if name else {}
            return (
                await world.http.post("/v1/completions", json=body, headers=headers)
            ).status_code

        assert await ask("", "a" * 10) == await ask("chat", "b" * 20) == 200
        assert await ask("batch", "c" * 40) == 200
        executor.hold()
        held = [asyncio.create_task(ask("batch", f"{number}")) for number in range(12)]
        held += [asyncio.create_task(ask("chat", "d")) for _ in range(3)]
        await asyncio.sleep(0.2)
        page = (await world.http.get("/metrics")).text
        executor.free.set()
        await asyncio.gather(*held)
    read = {}
    for best_effort in ((), ("batch",), ("chat",)):
        profile = without_best_effort(PROFILES["headroom"], best_effort)
        samples = PodSamples(profile, "m")
        sample = samples.take(page, pod="u", time_s=1.0)
        assert sample is not None
        assert sample.generation is not None
        assert (sample.generation.preemptions is None) is bool(best_effort)
        lengths = sample.generation.prompt_lengths
        assert lengths is not None
        counts = samples.readings["u"].classes["batch"]
        assert (counts.fills, counts.in_flight) == (True, 12)
        read[best_effort] = (
            sample.arrivals,
            sample.waiting + sample.running,
            sample.latency.counts[-1],
            lengths.total,
            sample.generation.computed_prompt_tokens,
        )
    assert read[()][:4] == (18, 15, 3, 73), "a prompt has a token before its text"
    assert read["batch",] == (5, 3, 2, 32, 32), "as if the batch class did not exist"
    assert read["chat",][:4] == read[()][:4], "a class that does not fill is load whatever is said"
