"""The model server of this project: with batches, or with iterations where it generates text."""

from __future__ import annotations

from headroom.profiles.generation import CostMetrics, GenerationMetrics
from headroom.profiles.quantities import Histogram, Quantity, having, lacking, metric
from headroom.profiles.values import Profile

COST = CostMetrics(xx="headroom_iteration_cost_xx_total", xy="headroom_iteration_cost_xy_total")
"""Vllm has the same series with the plugin of this project."""


def _tokens(kind: str) -> Quantity:
    return metric("headroom_tokens_total", having("kind", kind))


def _answered(kind: str) -> Quantity:
    return metric("headroom_answered_prompt_tokens_total", having("kind", kind))


HEADROOM = Profile(
    name="headroom",
    title="Headroom model server",
    port=8000,
    ready_path="/v2/health/ready",
    live_path="/v2/health/live",
    batch_setting="HEADROOM_MAX_BATCH_SIZE",
    model_label="model",
    class_label="class",
    best_effort_label="best_effort",
    witness=metric("headroom_requests_total", having("outcome", "ok")),
    arrived=metric("headroom_requests_received_total"),
    retried=metric("headroom_requests_retried_total", optional=True),
    missed=metric("headroom_requests_total", lacking("outcome", "ok|invalid"), lazy=True),
    waiting=metric("headroom_requests_waiting"),
    running=metric("headroom_requests_running"),
    running_seconds=metric("headroom_request_duration_seconds_sum", optional=True),
    latency=Histogram(name="headroom_request_duration_seconds"),
    batches=metric("headroom_execution_duration_seconds_count"),
    batch_items=metric("headroom_batch_size_sum"),
    batch_seconds=metric("headroom_execution_duration_seconds_sum"),
    fixed_cost_s=metric("headroom_cost_fixed_seconds", optional=True),
    item_cost_s=metric("headroom_cost_per_item_seconds", optional=True),
    max_batch=metric("headroom_max_batch_size", optional=True),
    pages=metric("headroom_scrapes_total", optional=True),
    first_token=Histogram(lazy=True, name="headroom_time_to_first_token_seconds"),
    output_token=Histogram(lazy=True, name="headroom_time_per_output_token_seconds"),
    generation=GenerationMetrics(
        iterations=metric("headroom_iterations_total"),
        engine_seconds=metric("headroom_device_busy_seconds_total"),
        computed_prompt_tokens=_tokens("computed"),
        cached_prompt_tokens=_tokens("cached"),
        answered_computed_tokens=_answered("computed"),
        answered_cached_tokens=_answered("cached"),
        generated_tokens=_tokens("generated"),
        sequence_seconds=metric("headroom_inter_token_latency_seconds_sum"),
        preemptions=metric("headroom_preemptions_total"),
        accepted_tokens=_tokens("accepted"),
        waiting_tokens=metric("headroom_waiting_tokens"),
        context_tokens=metric("headroom_context_tokens"),
        kv_used=metric("headroom_kv_blocks", having("state", "used")),
        kv_all=metric("headroom_kv_blocks"),
        kv_block_tokens=metric("headroom_kv_block_tokens"),
        sequences=metric("headroom_max_batch_size"),
        iteration_tokens=metric("headroom_max_iteration_tokens"),
        prompt_lengths=Histogram(name="headroom_prompt_tokens"),
        output_lengths=Histogram(name="headroom_answer_tokens"),
        cost=COST,
    ),
    conserves=True,
)
