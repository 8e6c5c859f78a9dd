"""SGLang: continuous batching, so a batch is the set of requests that run at the same time."""

from __future__ import annotations

from headroom.profiles.generation import GenerationMetrics
from headroom.profiles.quantities import Histogram, Quantity, having, metric
from headroom.profiles.values import Profile, WarmupCall

_FIRST_RANK = having("tp_rank", "0|")
"""With --enable-metrics-for-all-schedulers each rank counts the same work."""


def _realtime(mode: str) -> Quantity:
    return metric("sglang:realtime_tokens_total", having("mode", mode), _FIRST_RANK)


SGLANG = Profile(
    name="sglang",
    title="SGLang",
    port=30000,
    ready_path="/health_generate",
    live_path="/health",
    warmup=WarmupCall(
        path="/generate", body={"text": "Warm.", "sampling_params": {"max_new_tokens": 16}}
    ),
    batch_argument="--max-running-requests",
    batch_setting="--max-running-requests",
    model_label="model_name",
    answered=metric("sglang:num_requests_total", lazy=True),
    missed=metric("sglang:num_aborted_requests_total", lazy=True),
    waiting=(
        *metric("sglang:num_queue_reqs"),
        *metric("sglang:num_grammar_queue_reqs", lazy=True),
    ),
    running=metric("sglang:num_running_reqs"),
    running_seconds=(
        *metric("sglang:e2e_request_latency_seconds_sum", lazy=True),
        *metric("sglang:queue_time_seconds_sum", scale=-1.0, lazy=True),
    ),
    latency=Histogram(
        name="sglang:e2e_request_latency_seconds",
        lazy=True,
        bounds_s=(
            *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0),
            *(20.0, 40.0, 60.0, 80.0, 100.0, 200.0, 400.0, 600.0, 1200.0, 1800.0, 2400.0),
        ),
    ),
    first_token=Histogram(lazy=True, name="sglang:time_to_first_token_seconds"),
    output_token=Histogram(lazy=True, name="sglang:request_time_per_output_token_seconds"),
    generation=GenerationMetrics(
        iterations=metric("sglang:cuda_graph_passes_total", _FIRST_RANK),
        engine_seconds=metric("sglang:forward_execution_seconds_total", _FIRST_RANK),
        idle_seconds=metric("sglang:scheduler_idle_seconds_total", _FIRST_RANK),
        computed_prompt_tokens=_realtime("prefill_compute"),
        cached_prompt_tokens=_realtime("prefill_cache"),
        generated_tokens=_realtime("decode"),
        sequence_seconds=metric("sglang:inter_token_latency_seconds_sum"),
        preemptions=metric("sglang:num_retracted_requests_total", _FIRST_RANK),
        context_tokens=metric("sglang:decode_sum_seq_lens", _FIRST_RANK),
        kv_used=metric("sglang:kv_used_tokens", _FIRST_RANK),
        kv_all=metric("sglang:max_total_num_tokens", _FIRST_RANK),
        kv_share=metric("sglang:token_usage", _FIRST_RANK),
        prompt_lengths=Histogram(name="sglang:prompt_tokens_histogram"),
        output_lengths=Histogram(name="sglang:generation_tokens_histogram"),
        silent=(
            (
                "Engine seconds are those in which the scheduler was not idle, unless "
                "SGLANG_ENABLE_METRICS_DEVICE_TIMER=1 is set."
            ),
            "With speculation, steps and drafts are not counted.",
            "Prompt tokens that wait and the token budget of an iteration are not exposed.",
        ),
    ),
    missing=(
        "Metrics need --enable-metrics.",
        "Arrivals are ended + waiting + running requests: it counts requests when they end.",
        "The batch size is derived from latency minus queue time (Little's law).",
    ),
)
