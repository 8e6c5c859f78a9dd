"""Hugging Face Text Generation Inference: continuous batching; metrics appear on first use."""

from __future__ import annotations

from headroom.profiles.generation import GenerationMetrics
from headroom.profiles.quantities import Histogram, geometric, metric
from headroom.profiles.values import Profile, WarmupCall

TGI = Profile(
    name="tgi",
    title="Text Generation Inference",
    port=80,
    ready_path="/health",
    live_path="/health",
    warmup=WarmupCall(
        path="/generate", body={"inputs": "Warm.", "parameters": {"max_new_tokens": 16}}
    ),
    batch_argument="--max-batch-size",
    batch_setting="--max-batch-size, or what --max-batch-total-tokens leaves room for",
    witness=metric("tgi_queue_size"),
    empty_until_asked=True,
    arrived=metric("tgi_request_count", lazy=True),
    answered=metric("tgi_request_success", lazy=True),
    missed=metric("tgi_request_failure", lazy=True),
    waiting=metric("tgi_queue_size", lazy=True),
    running=metric("tgi_batch_current_size", lazy=True),
    waiting_seconds=metric("tgi_request_queue_duration_sum", lazy=True),
    running_seconds=metric("tgi_request_inference_duration_sum", lazy=True),
    latency=Histogram(
        name="tgi_request_duration", lazy=True, bounds_s=geometric(0.0001 * 1.5, 1.5, 35)
    ),
    output_token=Histogram(lazy=True, name="tgi_request_mean_time_per_token_duration"),
    generation=GenerationMetrics(
        iterations=metric("tgi_batch_inference_duration_count"),
        engine_seconds=metric("tgi_batch_inference_duration_sum"),
        generated_tokens=metric("tgi_request_generated_tokens_sum"),
        prompt_lengths=Histogram(name="tgi_request_input_length"),
        output_lengths=Histogram(name="tgi_request_generated_tokens"),
        silent=(
            "Computed and cached prompt tokens are counted as one: a prompt's cost is not known.",
            "The size and the use of the KV memory are not exposed.",
        ),
    ),
    missing=(
        "Time to first token is not measured.",
        "The batch size is derived from the execution time (Little's law).",
    ),
)
