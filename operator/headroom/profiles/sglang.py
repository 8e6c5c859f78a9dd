"""SGLang: continuous batching, so a batch is the set of requests that run at the same time."""

from __future__ import annotations

from headroom.profiles.values import Histogram, Profile, WarmupCall, metric

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
    missing=(
        "Metrics need --enable-metrics.",
        "Arrivals are ended + waiting + running requests: it counts requests when they end.",
        "The batch size is derived from latency minus queue time (Little's law).",
    ),
)
