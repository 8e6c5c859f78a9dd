"""The command `headroom plan generation` and its options."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from typing import Annotated

import typer

from headroom.cli.cluster_options import Output, OutputOption
from headroom.cli.commands.plan.options import (
    COST,
    SLO,
    MaxUtilization,
    Percentile,
    Rate,
    RoutingOption,
)
from headroom.cli.commands.plan.output import exit_on_invalid_input, show

REQUESTS = "Requests"


def generation(
    rate: Rate,
    prompt: Annotated[
        float, typer.Option(help="Mean tokens of a prompt.", rich_help_panel=REQUESTS)
    ],
    output_tokens: Annotated[
        float,
        typer.Option("--answer", help="Mean tokens of an answer.", rich_help_panel=REQUESTS),
    ],
    prompt_cv: Annotated[
        float,
        typer.Option(
            help="Deviation of prompts over their mean; 0: all alike.", rich_help_panel=REQUESTS
        ),
    ] = 1.0,
    answer_cv: Annotated[
        float,
        typer.Option(help="Deviation of answers over their mean.", rich_help_panel=REQUESTS),
    ] = 1.0,
    cached: Annotated[
        float,
        typer.Option(
            help="Share of prompt tokens found in the prefix cache.", rich_help_panel=REQUESTS
        ),
    ] = 0.0,
    accepted: Annotated[
        float,
        typer.Option(help="Tokens per step with speculation.", rich_help_panel=REQUESTS),
    ] = 1.0,
    on: Annotated[
        str | None,
        typer.Option(
            help="A model on GPUs of the table, such as qwen3-32b/2xh100.", rich_help_panel=COST
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A replica under load, whose metrics show the cost.",
            rich_help_panel=COST,
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="Server at that URL, as in runtime.profile.", rich_help_panel=COST)
    ] = "headroom",
    model: Annotated[
        str | None, typer.Option(help="Model at that URL, if several.", rich_help_panel=COST)
    ] = None,
    watch: Annotated[
        str, typer.Option(help="Time for which the URL is watched.", rich_help_panel=COST)
    ] = "1m",
    iteration_ms: Annotated[
        float | None,
        typer.Option(help="Milliseconds of an iteration without work.", rich_help_panel=COST),
    ] = None,
    prompt_token_ms: Annotated[
        float | None,
        typer.Option(help="Milliseconds per prompt token.", rich_help_panel=COST),
    ] = None,
    sequence_ms: Annotated[
        float | None,
        typer.Option(
            help="Milliseconds per decoding sequence; default: the usual share of a prompt token.",
            rich_help_panel=COST,
        ),
    ] = None,
    context_token_ms: Annotated[
        float | None,
        typer.Option(
            help="Milliseconds per token of context; default: the usual share of a prompt token.",
            rich_help_panel=COST,
        ),
    ] = None,
    kv_tokens: Annotated[
        float | None,
        typer.Option(help="Tokens that the KV memory holds.", rich_help_panel=COST),
    ] = None,
    max_sequences: Annotated[
        int | None,
        typer.Option(
            help="Sequences at once, at most; default: those of the server, else 256.",
            rich_help_panel=COST,
        ),
    ] = None,
    iteration_tokens: Annotated[
        int | None,
        typer.Option(
            help="Tokens of an iteration, at most; default: those of the server, else 8192.",
            rich_help_panel=COST,
        ),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(help="GPUs per replica.", rich_help_panel=COST)
    ] = None,
    routing: RoutingOption = "random",
    gpu_price: Annotated[
        float, typer.Option(help="Price of a GPU-hour.", rich_help_panel=COST)
    ] = 0.0,
    first_token: Annotated[
        str | None, typer.Option(help="Target of the time to first token.", rich_help_panel=SLO)
    ] = None,
    output_token: Annotated[
        str | None,
        typer.Option(help="Target of the time per output token.", rich_help_panel=SLO),
    ] = None,
    whole_answer: Annotated[
        str | None, typer.Option(help="Target of the whole answer.", rich_help_panel=SLO)
    ] = None,
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
