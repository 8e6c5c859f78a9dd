"""TensorRT-LLM's `trtllm-serve`: in-flight batching, requests counted when they end."""

from __future__ import annotations

from headroom.profiles.generation import GenerationMetrics
from headroom.profiles.quantities import MISS, Histogram, having, metric
from headroom.profiles.values import Profile, WarmupCall

_REQUEST_S = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)

TRTLLM = Profile(
    name="trtllm",
    title="TensorRT-LLM",
    port=8000,
    metrics_path="/prometheus/metrics",
    ready_path="/health",
    live_path="/health",
    prefix="trtllm_",
    warmup=WarmupCall(
        path="/v1/completions", body={"prompt": "Warm.", "max_tokens": 16}, takes_model=True
    ),
    batch_argument="--max_batch_size",
    batch_setting="--max_batch_size",
    model_label="model_name",
    witness=metric("trtllm_prompt_cached_tokens_total"),
    answered=metric("trtllm_request_success_total", lazy=True),
    missed=metric("trtllm_request_error_total", having("http_code", MISS), lazy=True),
    waiting=metric("trtllm_num_requests_waiting", lazy=True),
    running=metric("trtllm_num_requests_running", lazy=True),
    running_seconds=metric("trtllm_request_inference_time_seconds_sum", lazy=True),
    latency=Histogram(name="trtllm_e2e_request_latency_seconds", lazy=True, bounds_s=_REQUEST_S),
    first_token=Histogram(lazy=True, name="trtllm_time_to_first_token_seconds"),
    output_token=Histogram(lazy=True, name="trtllm_time_per_output_token_seconds"),
    generation=GenerationMetrics(
        computed_prompt_tokens=(
            *metric("trtllm_prompt_tokens_total"),
            *metric("trtllm_prompt_cached_tokens_total", scale=-1.0),
        ),
        cached_prompt_tokens=metric("trtllm_prompt_cached_tokens_total"),
        generated_tokens=metric("trtllm_generation_tokens_total"),
        sequence_seconds=metric("trtllm_request_decode_time_seconds_sum"),
        accepted_tokens=metric("trtllm_spec_decode_num_accepted_tokens_total"),
        kv_used=metric("trtllm_kv_cache_used_blocks"),
        kv_all=metric("trtllm_kv_cache_max_blocks"),
        kv_block_tokens=metric("trtllm_kv_cache_tokens_per_block"),
        sequences=metric("trtllm_max_batch_size_runtime"),
        iteration_tokens=metric("trtllm_max_num_tokens_runtime"),
        silent=(
            (
                "Iterations are not counted and only the last one is timed, so the cost of an "
                "iteration is not known."
            ),
            "Tokens count when their request ends.",
        ),
    ),
    missing=(
        "Metrics need return_perf_metrics and enable_iter_perf_stats.",
        "Arrivals are ended + waiting + running requests: it counts requests when they end.",
        "The batch size is derived from the execution time (Little's law).",
    ),
)
