"""Hugging Face Text Embeddings Inference: token-bounded batches; metrics appear on first use."""

from __future__ import annotations

from headroom.profiles.quantities import Histogram, geometric, metric
from headroom.profiles.values import Profile, WarmupCall

TEI = Profile(
    name="tei",
    title="Text Embeddings Inference",
    port=80,
    ready_path="/health",
    live_path="/health",
    warmup=WarmupCall(path="/embed", body={"inputs": "Warm."}),
    batch_argument="--max-batch-requests",
    batch_setting="--max-batch-requests, or what --max-batch-tokens leaves room for",
    witness=metric("te_queue_size"),
    empty_until_asked=True,
    arrived=metric("te_request_count", lazy=True),
    answered=metric("te_request_success", lazy=True),
    missed=metric("te_request_failure", lazy=True),
    waiting=metric("te_queue_size", lazy=True),
    waiting_seconds=metric("te_request_queue_duration_sum", lazy=True),
    running_seconds=(
        *metric("te_embed_inference_duration_sum", lazy=True),
        *metric("te_predict_inference_duration_sum", lazy=True),
    ),
    latency=Histogram(
        name="te_request_duration", lazy=True, bounds_s=geometric(0.00001 * 1.5, 1.5, 35)
    ),
    batches=metric("te_batch_next_size_count", lazy=True),
    batch_items=metric("te_batch_next_size_sum", lazy=True),
    missing=(
        "The batch size is the inference time per second (Little's law).",
        "Execution time is summed over requests: batches per request correct it.",
    ),
)
