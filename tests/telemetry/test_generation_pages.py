"""Pages of generating servers: recorded ones, missing quantities, and pages that lie."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from headroom.profiles import PROFILES
from headroom.scaling.generation.counters.token_counters import TokenCounters
from headroom.scaling.values.tokens import EngineLimits
from headroom.telemetry.bounds.stated_limits import stated_limits
from headroom.telemetry.samples.pod_samples import PodSamples
from telemetry.generation_read import BATCH, PAGES, generation, text_of


def test_vllm_page_under_memory_pressure_has_work_memory_and_lengths() -> None:
    tokens = generation("vllm")
    assert (tokens.iterations, tokens.engine_seconds, tokens.cost_sums) == (979, None, None)
    assert (tokens.computed_prompt_tokens, tokens.cached_prompt_tokens) == (50592, 0)
    assert (tokens.generated_tokens, tokens.sequence_steps) == (5929, 5764)
    assert tokens.sequence_seconds == pytest.approx(432.30152)
    assert tokens.preemptions == 0
    assert (tokens.drafts, tokens.accepted_tokens) == (None, None), "not exposed: no speculation"
    assert tokens.kv_used_share == pytest.approx(196 / 199)
    # 200 blocks of 32 tokens, as a label; --max-num-seqs is on no page and comes from the resource
    assert tokens.limits == EngineLimits(kv_tokens=6400, sequences=16, iteration_tokens=None)
    assert tokens.prompt_lengths is not None
    assert (tokens.prompt_lengths.counts[-1], tokens.prompt_lengths.total) == (149, 44992)
    assert tokens.prompt_lengths.bounds[-1] == math.inf
    assert tokens.output_lengths is not None
    assert (tokens.output_lengths.counts[-1], tokens.output_lengths.total) == (149, 4845)
    assert tokens.first_token is not None
    assert tokens.first_token.counts[-1] == 165
    assert tokens.output_token is not None
    assert tokens.output_token.counts[-1] == 149


def test_what_the_page_does_not_say_is_read_from_the_arguments() -> None:
    stated = EngineLimits(sequences=32, iteration_tokens=512)
    for page, tokens in ((text_of("vllm"), 512), ((PAGES / "vllm_plugin.prom").read_text(), 2048)):
        reader = PodSamples(PROFILES["vllm"], None, BATCH)
        reader.take(page, pod="u", time_s=1.0, stated=stated)
        sample = reader.take(page, pod="u", time_s=2.0, stated=stated)
        assert sample is not None
        assert sample.generation is not None
        limits = sample.generation.limits
        assert (limits.sequences, limits.iteration_tokens) == (32, tokens)


@pytest.mark.parametrize(
    ("arguments", "sequences", "iteration_tokens"),
    [
        pytest.param((), None, None, id="none"),
        pytest.param(("vllm", "serve", "m"), None, None, id="others"),
        pytest.param(
            ("--max-num-seqs", "32", "--max-num-batched-tokens", "512"), 32, 512, id="two words"
        ),
        pytest.param(("--max-num-seqs=32", "--max-num-batched-tokens=512"), 32, 512, id="one word"),
        pytest.param(("--max_num_seqs=32",), 32, None, id="underscores"),
        pytest.param(
            ("sh", "-c", "vllm serve m \\\n --max-num-seqs '32' --max-num-batched-tokens=\"512\""),
            32,
            512,
            id="the text of a shell",
        ),
        pytest.param(("--max-num-seqs=8", "--max-num-seqs=32"), 32, None, id="the last one counts"),
        pytest.param(("--max-num-seqs=$(SEQS)", "--max-num-batched-tokens"), None, None, id="none"),
        pytest.param(("--max-num-seqs", "-1", "--max-num-batched-tokens=0"), None, None, id="0"),
        pytest.param(("--max-num-seqs=1048577",), None, None, id="more than any server can"),
        pytest.param(("--max-num-batched-tokens=" + "9" * 5000,), None, None, id="5000 digits"),
        pytest.param(("--max-num-seqs=٣٢",), None, None, id="digits of another script"),
    ],
)
def test_limits_are_read_from_arguments_that_are_numbers(
    arguments: tuple[str, ...], sequences: int | None, iteration_tokens: int | None
) -> None:
    expected = EngineLimits(sequences=sequences, iteration_tokens=iteration_tokens)
    assert stated_limits(PROFILES["vllm"], arguments) == expected
    assert stated_limits(PROFILES["mosec"], arguments) == EngineLimits(), "it does not generate"


def test_vllm_page_with_the_plugin_has_sums_that_agree_with_its_own_counters() -> None:
    tokens = generation("vllm", (PAGES / "vllm_plugin.prom").read_text())
    assert tokens.cost_sums is not None
    iterations, prompt_tokens, decodes, *_ = tokens.cost_sums.xx
    assert (iterations, prompt_tokens, decodes) == (98, 7144, 941)
    assert (tokens.iterations, tokens.computed_prompt_tokens) == (98, 7144)
    assert tokens.sequence_steps == 941
    assert tokens.engine_seconds == pytest.approx(107.61568)
    assert tokens.limits == EngineLimits(kv_tokens=9600, sequences=16, iteration_tokens=2048)


def test_vllm_page_without_kv_size_label_takes_blocks_times_block_size() -> None:
    text = text_of("vllm").replace('kv_cache_size_tokens="6400"', 'kv_cache_size_tokens="None"')
    assert generation("vllm", text).limits.kv_tokens == 6400
    text = text.replace('num_gpu_blocks="200"', 'num_gpu_blocks="None"')
    assert generation("vllm", text).limits.kv_tokens is None


def of_two_engines(text: str) -> str:
    lines = text.splitlines(keepends=True)
    other = [one.replace('engine="0"', 'engine="1"') for one in lines if 'engine="0"' in one]
    return "".join([*lines, *other])


def test_vllm_page_of_two_engines_adds_memory_and_averages_its_use() -> None:
    tokens = generation("vllm", of_two_engines(text_of("vllm")))
    assert tokens.limits.kv_tokens == 12800
    assert tokens.kv_used_share == pytest.approx(196 / 199)
    assert tokens.generated_tokens == 2 * 5929


def test_engine_that_a_server_drops_takes_nothing_from_its_counters() -> None:
    """Else the other's tokens would be those of this tick, and the dropped one's of its return."""
    alone, reader = text_of("vllm"), PodSamples(PROFILES["vllm"], None, BATCH)
    counters, found = TokenCounters(), []
    for number, text in enumerate([of_two_engines(alone), alone, of_two_engines(alone)]):
        sample = reader.take(text, pod="u", time_s=2.0 * number)
        assert sample is not None
        counters, increase = counters.advance([sample])
        found.append(float(np.nansum(increase.total)))
    assert found == [0.0, 0.0, 0.0]


def test_dynamo_worker_counts_tokens_by_their_times() -> None:
    tokens = generation("dynamo")
    # its frontend counted 4025 output tokens at that moment
    assert (tokens.generated_tokens, tokens.sequence_steps) == (4025, 3958)
    assert (tokens.iterations, tokens.computed_prompt_tokens) == (None, None)
    assert (tokens.kv_used_share, tokens.limits.kv_tokens) == (0.88, None)


def test_dynamo_worker_counts_requests_on_arrival() -> None:
    reader = PodSamples(PROFILES["dynamo"], None, BATCH)
    sample = reader.take(text_of("dynamo"), pod="u", time_s=1.0)
    assert sample is not None
    assert (sample.arrivals, sample.waiting, sample.running) == (99, 32, 16)


def test_times_between_tokens_stand_for_those_per_output_token_of_dynamos_mocker() -> None:
    reader = PodSamples(PROFILES["dynamo"], None, BATCH)
    sample = reader.take(text_of("dynamo"), pod="u", time_s=1.0)
    shown = reader.readings["u"].output_token
    assert shown is not None
    assert (shown.bounds_s[:2], shown.counts[:2]) == ((0.01, 0.025), (532, 2647))
    assert sample is not None
    assert sample.generation is not None
    assert sample.generation.output_token is None, "the model counts requests"


def test_llamacpp_page_has_iterations_and_tokens_only() -> None:
    tokens = generation("llamacpp")
    assert (tokens.iterations, tokens.computed_prompt_tokens) == (263, 4163)
    assert (tokens.generated_tokens, tokens.sequence_seconds) == (2231, 2179.8)
    assert (tokens.engine_seconds, tokens.kv_used_share, tokens.first_token) == (None, None, None)
    assert tokens.limits == EngineLimits(sequences=16)


def test_llamacpp_arrivals_are_the_increases_of_requests_in_flight() -> None:
    """Four pages: 5 in flight, 2, 6 and 2: of 9 arrivals 7 have ended, each after 2 s or so."""
    reader = PodSamples(PROFILES["llamacpp"], None, BATCH)
    found = []
    for time_s, running in ((0.0, 5), (2.0, 2), (4.0, 6), (6.0, 2)):
        text = re.sub(r"(requests_processing) 5", rf"\1 {running}", text_of("llamacpp"))
        sample = reader.take(text, pod="u", time_s=time_s)
        assert sample is not None
        found.append((sample.arrivals, sample.batch_items, sample.missed))
    assert found == [(5, 0, 0), (5, 0, 0), (9, 0, 0), (9, 7, 0)]


def test_trtllm_page_has_memory_and_limits_but_no_iterations() -> None:
    tokens = generation("trtllm")
    assert (tokens.iterations, tokens.engine_seconds) == (None, None)
    assert (tokens.computed_prompt_tokens, tokens.cached_prompt_tokens) == (70000, 30000)
    assert tokens.kv_used_share == 0.25
    limits = EngineLimits(kv_tokens=160000, sequences=64, iteration_tokens=8192)
    assert tokens.limits == limits
