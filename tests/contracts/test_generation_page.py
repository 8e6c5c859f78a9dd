"""The operator reads the page of this project's generating server as it is written."""

from __future__ import annotations

import asyncio

import pytest

from headroom.profiles.headroom import HEADROOM
from headroom.scaling.values.tokens import EngineLimits
from headroom.telemetry.samples.pod_samples import PodSamples
from support.generation_front import LIMITS, ScriptedExecutor, answers, front

pytestmark = pytest.mark.clock


async def test_page_of_the_generating_server_has_work_memory_and_promises() -> None:
    reader = PodSamples(HEADROOM, "m")
    async with front(ScriptedExecutor(answers(b"five."), pace_s=0.002)) as world:
        await asyncio.gather(*(world.complete("x" * 40) for _ in range(6)))
        page = (await world.http.get("/metrics")).text
    sample = reader.take(page, pod="u", time_s=1.0)
    assert sample is not None
    assert (sample.arrivals, sample.missed, sample.max_batch) == (6, 0, LIMITS.max_sequences)
    tokens = sample.generation
    assert tokens is not None
    assert tokens.limits == EngineLimits(
        kv_tokens=LIMITS.blocks * LIMITS.block_tokens,
        sequences=LIMITS.max_sequences,
        iteration_tokens=LIMITS.max_iteration_tokens,
    )
    assert tokens.generated_tokens == 6 * 6, "five letters and the end"
    assert (tokens.computed_prompt_tokens or 0) + (tokens.cached_prompt_tokens or 0) == 6 * 41
    assert tokens.cost_sums is not None
    assert tokens.kv_used_share == 0.0
    for histogram in (tokens.first_token, tokens.output_token):
        assert histogram is not None
        assert histogram.counts[-1] == 6
    assert tokens.prompt_lengths is not None
    assert (tokens.prompt_lengths.counts[-1], tokens.prompt_lengths.total) == (6, 6 * 41)
    assert tokens.engine_seconds is not None
    assert tokens.engine_seconds > 0.0
