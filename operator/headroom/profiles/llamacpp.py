"""llama.cpp's `llama-server`: slots decode together; no requests and no latencies are counted."""

from __future__ import annotations

from headroom.profiles.generation import GenerationMetrics
from headroom.profiles.quantities import metric
from headroom.profiles.values import Profile, WarmupCall

LLAMACPP = Profile(
    name="llamacpp",
    title="llama.cpp server",
    port=8080,
    ready_path="/health",
    live_path="/health",
    prefix="llamacpp:",
    warmup=WarmupCall(path="/completion", body={"prompt": "Warm.", "n_predict": 16}),
    batch_argument="--parallel",
    batch_setting="--parallel",
    waiting=metric("llamacpp:requests_deferred"),
    running=metric("llamacpp:requests_processing"),
    generation=GenerationMetrics(
        iterations=metric("llamacpp:n_decode_total"),
        computed_prompt_tokens=metric("llamacpp:prompt_tokens_total"),
        cached_prompt_tokens=metric("llamacpp:prompt_tokens_cached_total"),
        generated_tokens=metric("llamacpp:tokens_predicted_total"),
        sequence_seconds=metric("llamacpp:tokens_predicted_seconds_total"),
        drafts=metric("llamacpp:spec_decode_num_drafts_total"),
        accepted_tokens=metric("llamacpp:spec_decode_num_accepted_tokens_total"),
        silent=(
            "Prompts count when they are computed and answers when they end.",
            "Engine seconds, the size and the use of the KV memory, and lengths are not exposed.",
        ),
    ),
    missing=(
        "There is no latency histogram: SLOMet is Unknown, and replicas follow from the queue.",
        "Metrics need --metrics.",
        (
            "Requests are not counted: arrivals are increases of requests in flight from page to "
            "page, a lower bound."
        ),
    ),
)
