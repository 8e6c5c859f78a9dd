"""NVIDIA Triton. Durations are in microseconds and summed over requests, not over batches.

A batch of eight that computes for 10 ms adds 80 ms to `compute_infer`: read as busy time, that is
485 % instead of 101 %. Executions per request, known from two counters, correct it.
"""

from __future__ import annotations

from headroom.profiles.quantities import MICROSECONDS, metric
from headroom.profiles.values import Profile, WarmupCall

TRITON = Profile(
    name="triton",
    title="NVIDIA Triton Inference Server",
    port=8000,
    metrics_port=8002,
    ready_path="/v2/health/ready",
    live_path="/v2/health/live",
    warmup=WarmupCall(path="/v2/models/{model}/infer", inputs_path="/v2/models/{model}"),
    batch_setting="max_batch_size in the model's config.pbtxt",
    model_label="model",
    answered=metric("nv_inference_request_success"),
    missed=metric("nv_inference_request_failure", lazy=True),
    waiting=metric("nv_inference_pending_request_count"),
    waiting_seconds=metric("nv_inference_queue_duration_us", scale=MICROSECONDS),
    running_seconds=(
        *metric("nv_inference_compute_input_duration_us", scale=MICROSECONDS),
        *metric("nv_inference_compute_infer_duration_us", scale=MICROSECONDS),
        *metric("nv_inference_compute_output_duration_us", scale=MICROSECONDS),
    ),
    batches=metric("nv_inference_exec_count"),
    missing=(
        "There is no latency histogram: latency is modelled from the batches, not measured.",
        "The batch size is the compute time per second (Little's law).",
        "Arrivals are answered + failed + waiting + running requests.",
        "Execution time is summed over requests: executions per request correct it.",
    ),
)
