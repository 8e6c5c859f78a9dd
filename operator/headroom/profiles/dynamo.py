"""A worker of NVIDIA Dynamo, or its mocker: vLLM's names on the worker's own port."""

from __future__ import annotations

from headroom.profiles.generation import GenerationMetrics, InfoLabels
from headroom.profiles.quantities import Histogram, having, metric
from headroom.profiles.values import Profile

_GENERATE = having("dynamo_endpoint", "generate")

DYNAMO = Profile(
    name="dynamo",
    title="Dynamo worker",
    port=8000,
    metrics_port=9090,
    ready_path="/health",
    live_path="/live",
    batch_argument="--max-num-seqs",
    iteration_argument="--max-num-batched-tokens",
    batch_setting="--max-num-seqs of the worker",
    model_label="model_name",
    witness=metric("dynamo_component_uptime_seconds"),
    arrived=metric("dynamo_component_requests_total", _GENERATE, lazy=True),
    missed=metric("dynamo_component_cancellation_total", _GENERATE, lazy=True),
    waiting=metric("vllm:num_requests_waiting", lazy=True),
    running=metric("vllm:num_requests_running", lazy=True),
    running_seconds=metric("vllm:e2e_request_latency_seconds_sum", lazy=True),
    latency=Histogram(name="vllm:e2e_request_latency_seconds", lazy=True),
    first_token=Histogram(lazy=True, name="vllm:time_to_first_token_seconds"),
    output_token=Histogram(
        lazy=True,
        name="vllm:request_time_per_output_token_seconds",
        instead="vllm:inter_token_latency_seconds",
    ),
    generation=GenerationMetrics(
        iterations=metric("vllm:iteration_tokens_total_count"),
        computed_prompt_tokens=metric(
            "vllm:prompt_tokens_by_source_total", having("source", "local_compute")
        ),
        cached_prompt_tokens=metric("vllm:prompt_tokens_cached_total"),
        # Each answer has its first token and as many others as times between tokens.
        generated_tokens=(
            *metric("vllm:time_to_first_token_seconds_count"),
            *metric("vllm:inter_token_latency_seconds_count"),
        ),
        sequence_steps=metric("vllm:inter_token_latency_seconds_count"),
        sequence_seconds=metric("vllm:inter_token_latency_seconds_sum"),
        preemptions=metric("vllm:num_preemptions_total"),
        kv_share=metric("vllm:kv_cache_usage_perc"),
        kv_info=InfoLabels(
            metric="vllm:cache_config_info",
            tokens="kv_cache_size_tokens",
            blocks="num_gpu_blocks",
            block_tokens="block_size",
        ),
        prompt_lengths=Histogram(name="vllm:request_prompt_tokens"),
        output_lengths=Histogram(name="vllm:request_generation_tokens"),
        silent=(
            "The mocker's worker exposes neither iterations nor prompt tokens nor lengths.",
            "The mocker's worker does not expose the size of the KV memory.",
        ),
    ),
    missing=(
        "The worker's page needs DYN_SYSTEM_PORT=9090.",
        (
            "The mocker's worker has no time per output token of a request: the percentile of the "
            "times between tokens stands for it, which single slow iterations raise."
        ),
        "Time in the queue counts as execution: batches are too large while requests wait.",
    ),
)
