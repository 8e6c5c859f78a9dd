"""vLLM: continuous batching, so a batch is the set of requests that run at the same time."""

from __future__ import annotations

from headroom.profiles.values import Histogram, Profile, WarmupCall, having, lacking, metric

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
    missing=(
        "Arrivals are ended + waiting + running requests: it counts requests when they end.",
        "The batch size is derived from the execution time (Little's law).",
        "The latency histogram starts at 300 ms: lower targets need other bounds, set in vLLM.",
    ),
)
