"""The command `headroom plan generation`."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from headroom.cli.cluster_options import Output, OutputOption
from headroom.cli.commands.plan.generation_options import (
    Accepted,
    Answer,
    AnswerCv,
    Cached,
    ContextTokenMs,
    FirstToken,
    GpuPrice,
    GpusOrTable,
    IterationMs,
    IterationTokens,
    KvTokens,
    MaxSequences,
    Measure,
    Model,
    On,
    OutputToken,
    Profile,
    Prompt,
    PromptCv,
    PromptTokenMs,
    SequenceMs,
    Watch,
    WholeAnswer,
)
from headroom.cli.commands.plan.options import MaxUtilization, Percentile, Rate, RoutingOption
from headroom.cli.commands.plan.output import exit_on_invalid_input, show


def generation(
    rate: Rate,
    prompt: Prompt,
    output_tokens: Answer,
    prompt_cv: PromptCv = 1.0,
    answer_cv: AnswerCv = 1.0,
    cached: Cached = 0.0,
    accepted: Accepted = 1.0,
    on: On = None,
    measure: Measure = None,
    profile: Profile = "headroom",
    model: Model = None,
    watch: Watch = "1m",
    iteration_ms: IterationMs = None,
    prompt_token_ms: PromptTokenMs = None,
    sequence_ms: SequenceMs = None,
    context_token_ms: ContextTokenMs = None,
    kv_tokens: KvTokens = None,
    max_sequences: MaxSequences = None,
    iteration_tokens: IterationTokens = None,
    gpus: GpusOrTable = None,
    routing: RoutingOption = "random",
    gpu_price: GpuPrice = 0.0,
    first_token: FirstToken = None,
    output_token: OutputToken = None,
    whole_answer: WholeAnswer = None,
    percentile: Percentile = 95.0,
    max_utilization: MaxUtilization = 0.8,
    output: OutputOption = Output.TEXT,
) -> None:
    """Plan replicas, cost and server settings for a generating model; name the limiting bound."""
    from headroom.cli.commands.plan.generation import Asked, planned_generation
    from headroom.cli.commands.plan.replica_cost import GivenReplica

    with exit_on_invalid_input():
        asked = Asked(
            rate_rps=rate,
            prompt=prompt,
            output=output_tokens,
            prompt_cv=prompt_cv,
            output_cv=answer_cv,
            cached=cached,
            accepted=accepted,
            replica=GivenReplica(
                on=on,
                measure=measure,
                iteration_ms=iteration_ms,
                prompt_token_ms=prompt_token_ms,
                sequence_ms=sequence_ms,
                context_token_ms=context_token_ms,
                kv_tokens=kv_tokens,
                max_sequences=max_sequences,
                iteration_tokens=iteration_tokens,
                gpus=gpus,
            ),
            profile=profile,
            model=model,
            watch=watch,
            gpu_price=gpu_price,
            first_token=first_token,
            output_token=output_token,
            whole_answer=whole_answer,
            percentile=percentile,
            max_utilization=max_utilization,
            routing=routing,
        )
        show(*planned_generation(asked), output)
