"""vLLM: continuous batching, so a batch is the set of requests that run at the same time."""

from __future__ import annotations

from headroom.profiles.generation import GenerationMetrics, InfoLabels
from headroom.profiles.headroom import COST
from headroom.profiles.quantities import Histogram, having, lacking, metric
from headroom.profiles.values import Profile, WarmupCall

_REQUEST_S = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)

VLLM = Profile(
    name="vllm",
    title="vLLM",
    port=8000,
    ready_path="/health",
    live_path="/health",
    warmup=WarmupCall(
        path="/v1/completions", body={"prompt": "Warm.", "max_tokens": 16}, takes_model=True
    ),
    batch_argument="--max-num-seqs",
    iteration_argument="--max-num-batched-tokens",
    batch_setting="--max-num-seqs",
    model_label="model_name",
    answered=metric(
        "vllm:request_success_total",
        lacking("finished_reason", "abort|error"),
        lazy=True,
    ),
    missed=metric(
        "vllm:request_success_total", having("finished_reason", "abort|error"), lazy=True
    ),
    waiting=metric("vllm:num_requests_waiting"),
    running=metric("vllm:num_requests_running"),
    running_seconds=metric("vllm:request_inference_time_seconds_sum", lazy=True),
    latency=Histogram(name="vllm:e2e_request_latency_seconds", lazy=True, bounds_s=_REQUEST_S),
    first_token=Histogram(lazy=True, name="vllm:time_to_first_token_seconds"),
    output_token=Histogram(lazy=True, name="vllm:request_time_per_output_token_seconds"),
    generation=GenerationMetrics(
        iterations=metric("vllm:iteration_tokens_total_count"),
        computed_prompt_tokens=metric(
            "vllm:prompt_tokens_by_source_total", having("source", "local_compute")
        ),
        cached_prompt_tokens=metric("vllm:prompt_tokens_cached_total"),
        generated_tokens=metric("vllm:generation_tokens_total"),
        # One observation per sequence and step after its first token, with speculation too.
        sequence_steps=metric("vllm:inter_token_latency_seconds_count"),
        sequence_seconds=metric("vllm:inter_token_latency_seconds_sum"),
        prompt_seconds=metric("vllm:request_prefill_time_seconds_sum"),
        timed_prompts=metric("vllm:request_prefill_time_seconds_count"),
        preemptions=metric("vllm:num_preemptions_total"),
        drafts=metric("vllm:spec_decode_num_drafts_total"),
        accepted_tokens=metric("vllm:spec_decode_num_accepted_tokens_total"),
        kv_share=metric("vllm:kv_cache_usage_perc"),
        kv_info=InfoLabels(
            metric="vllm:cache_config_info",
            tokens="kv_cache_size_tokens",
            blocks="num_gpu_blocks",
            block_tokens="block_size",
        ),
        iteration_tokens=metric("headroom_max_iteration_tokens"),
        prompt_lengths=Histogram(name="vllm:request_prompt_tokens"),
        output_lengths=Histogram(name="vllm:request_generation_tokens"),
        cost=COST,
        silent=(
            (
                "Without the plugin there are no engine seconds: the time of an iteration is that "
                "between two tokens of a sequence, or that of a prompt."
            ),
            (
                "Iterations that only compute part of a prompt are not counted; a prompt counts "
                "when it is complete."
            ),
            "Prompt tokens that wait are not exposed, only requests.",
        ),
    ),
    missing=(
        (
            "Arrivals are ended + waiting + running requests: it counts requests when they end. "
            "It does not count requests that clients give up; those that had a first token are its "
            "first tokens minus those of all other requests."
        ),
        "The batch size is derived from the execution time (Little's law).",
        "The latency histogram starts at 300 ms: lower targets need other bounds, set in vLLM.",
    ),
)
