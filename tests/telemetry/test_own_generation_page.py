"""Generation on pages of Headroom's server and of odd ones; impossible values are refused."""

from __future__ import annotations

import re

import pytest

from headroom.profiles import PROFILES
from headroom.scaling.values.tokens import GenerationSample
from headroom.telemetry.errors import InvalidMetric
from headroom.telemetry.samples.pod_samples import PodSamples
from support.pods_world import page as requests_page
from telemetry.generation_read import BATCH, generation, text_of


def test_own_page_has_everything() -> None:
    tokens = generation("headroom")
    assert tokens.cost_sums is not None
    assert len(tokens.cost_sums.xx) == 15
    assert len(tokens.cost_sums.xy) == 5
    assert tokens.iterations == tokens.cost_sums.xx[0]
    unknown = {name for name in GenerationSample.__slots__ if getattr(tokens, name) is None}
    untimed = {"prompt_seconds", "timed_prompts"}
    assert unknown == {"sequence_steps", "drafts", *untimed}, "decodes: sum 1 x D of cost_sums"
    assert None not in (tokens.limits.kv_tokens, tokens.limits.iteration_tokens)
    assert tokens.limits.sequences is not None


def test_page_of_batches_has_no_generation() -> None:
    reader = PodSamples(PROFILES["headroom"], "m")
    sample = reader.take(requests_page(model="m", served=4), pod="u", time_s=1.0)
    assert sample is not None
    assert sample.generation is None


SGLANG = """\
sglang:num_running_reqs{model_name="q",tp_rank="0"} 2
sglang:num_queue_reqs{model_name="q",tp_rank="0"} 0
sglang:cuda_graph_passes_total{mode="decode_cuda_graph",model_name="q",tp_rank="0"} 90
sglang:cuda_graph_passes_total{mode="prefill_none",model_name="q",tp_rank="0"} 10
sglang:cuda_graph_passes_total{mode="prefill_none",model_name="q",tp_rank="1"} 10
sglang:scheduler_idle_seconds_total{model_name="q",tp_rank="0"} 40
sglang:realtime_tokens_total{mode="prefill_compute",model_name="q",tp_rank="0"} 700
sglang:realtime_tokens_total{mode="prefill_cache",model_name="q",tp_rank="0"} 300
sglang:realtime_tokens_total{mode="decode",model_name="q",tp_rank="0"} 500
sglang:kv_used_tokens{model_name="q",tp_rank="0"} 2500
sglang:max_total_num_tokens{model_name="q",tp_rank="0"} 10000
"""


def test_sglang_first_rank_speaks_for_all_and_the_rest_of_the_time_is_work() -> None:
    reader = PodSamples(PROFILES["sglang"], None, BATCH)
    for time_s in (100.0, 102.0):
        sample = reader.take(SGLANG, pod="u", time_s=time_s)
    assert sample is not None
    tokens = sample.generation
    assert tokens is not None
    assert tokens.iterations == 100
    assert tokens.engine_seconds == 62.0
    assert (tokens.computed_prompt_tokens, tokens.cached_prompt_tokens) == (700, 300)
    assert (tokens.kv_used_share, tokens.limits.kv_tokens) == (0.25, 10000)


@pytest.mark.parametrize(
    ("series", "value"),
    [
        ("headroom_iterations_total", "1e17"),
        ("headroom_device_busy_seconds_total", "-1"),
        ("headroom_context_tokens", "NaN"),
        ("headroom_waiting_tokens", "1e13"),
        ("headroom_max_iteration_tokens", "1e15"),
        ("headroom_kv_block_tokens", "1e9"),
        ("headroom_max_batch_size", "1e9"),
        ("headroom_prompt_tokens_sum", "+Inf"),
        ("headroom_iteration_cost_xx_total", "1e37"),
        ("headroom_iteration_cost_xy_total", "1e37"),
    ],
)
def test_own_page_with_an_impossible_value_is_refused_by_name(series: str, value: str) -> None:
    lines = rf"^({series}\{{.*\}}) \S+$"
    lying = re.sub(lines, rf"\1 {value}", text_of("headroom"), flags=re.MULTILINE)
    assert lying != text_of("headroom")
    with pytest.raises(InvalidMetric) as refused:
        generation("headroom", lying)
    assert refused.value.metric == series


def test_own_page_with_sums_that_no_iterations_have_is_refused() -> None:
    """A product of two features is at most the root of their squares (Cauchy and Schwarz)."""
    lying = re.sub(
        r'(column="D",.*row="1"|row="1",column="D")\} \S+', r"\1} 1e9", text_of("headroom")
    )
    assert lying != text_of("headroom")
    with pytest.raises(InvalidMetric, match="at most the root"):
        generation("headroom", lying)


def test_vllm_share_of_memory_above_all_of_it_is_refused() -> None:
    lying = re.sub(r"(kv_cache_usage_perc\{.*\}) \S+", r"\1 98.5", text_of("vllm"))
    with pytest.raises(InvalidMetric, match="kv_cache_usage_perc must be at most 1"):
        generation("vllm", lying)


def test_vllm_memory_of_absurd_size_is_refused() -> None:
    lying = text_of("vllm").replace(
        'kv_cache_size_tokens="6400"', 'kv_cache_size_tokens="999999999999999"'
    )
    with pytest.raises(InvalidMetric, match="must state at most"):
        generation("vllm", lying)


@pytest.mark.parametrize("server", sorted(PROFILES))
def test_server_that_generates_says_what_it_does_not_expose(server: str) -> None:
    metrics = PROFILES[server].generation
    if metrics is not None and server != "headroom":
        assert metrics.silent
        assert all(one.endswith(".") for one in metrics.silent)
