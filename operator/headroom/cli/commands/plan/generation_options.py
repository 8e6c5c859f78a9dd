"""The options of `headroom plan generation` as values, in the panels of its help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from headroom.cli.commands.plan.options import COST, SLO, MaxUtilization, Percentile

REQUESTS = "Requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """The lengths of prompts and answers."""

    prompt: Annotated[
        float, typer.Option(help="Mean tokens of a prompt.", rich_help_panel=REQUESTS)
    ]
    answer: Annotated[
        float,
        typer.Option(help="Mean tokens of an answer.", rich_help_panel=REQUESTS),
    ]
    prompt_cv: Annotated[
        float,
        typer.Option(
            help="Coefficient of variation of prompt lengths; 0: all alike.",
            rich_help_panel=REQUESTS,
        ),
    ] = 1.0
    answer_cv: Annotated[
        float,
        typer.Option(help="Coefficient of variation of answer lengths.", rich_help_panel=REQUESTS),
    ] = 1.0
    cached: Annotated[
        float,
        typer.Option(
            help="Share of prompt tokens found in the prefix cache.", rich_help_panel=REQUESTS
        ),
    ] = 0.0
    accepted: Annotated[
        float,
        typer.Option(
            help="Mean tokens per step with speculative decoding.", rich_help_panel=REQUESTS
        ),
    ] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOptions:
    """Cost and limits of one replica; None where not given."""

    on: Annotated[
        str | None,
        typer.Option(
            help="A model on GPUs of the table, such as qwen3-32b/2xh100.", rich_help_panel=COST
        ),
    ] = None
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A replica under load, whose metrics show the cost.",
            rich_help_panel=COST,
        ),
    ] = None
    profile: Annotated[
        str,
        typer.Option(
            help="Model server at the URL of --measure, as in runtime.profile.",
            rich_help_panel=COST,
        ),
    ] = "headroom"
    model: Annotated[
        str | None,
        typer.Option(help="Model at the URL of --measure, if several.", rich_help_panel=COST),
    ] = None
    watch: Annotated[
        str, typer.Option(help="Time for which --measure watches: 20s to 1h.", rich_help_panel=COST)
    ] = "1m"
    iteration_ms: Annotated[
        float | None,
        typer.Option(help="Milliseconds of an iteration without work.", rich_help_panel=COST),
    ] = None
    prompt_token_ms: Annotated[
        float | None,
        typer.Option(help="Milliseconds per prompt token.", rich_help_panel=COST),
    ] = None
    sequence_ms: Annotated[
        float | None,
        typer.Option(
            help="Milliseconds per decoding sequence; default: the usual share of a prompt token.",
            rich_help_panel=COST,
        ),
    ] = None
    context_token_ms: Annotated[
        float | None,
        typer.Option(
            help="Milliseconds per token of context; default: the usual share of a prompt token.",
            rich_help_panel=COST,
        ),
    ] = None
    kv_tokens: Annotated[
        float | None,
        typer.Option(help="Tokens that the KV memory holds.", rich_help_panel=COST),
    ] = None
    max_sequences: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of sequences at once; default: the server's, else 256.",
            rich_help_panel=COST,
        ),
    ] = None
    iteration_tokens: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of tokens per iteration; default: the server's, else 8192.",
            rich_help_panel=COST,
        ),
    ] = None
    gpus: Annotated[int | None, typer.Option(help="GPUs per replica.", rich_help_panel=COST)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseOptions:
    """The latencies to keep, and the share of the capacity to use."""

    first_token: Annotated[
        str | None, typer.Option(help="Target of the time to first token.", rich_help_panel=SLO)
    ] = None
    output_token: Annotated[
        str | None,
        typer.Option(help="Target of the time per output token.", rich_help_panel=SLO),
    ] = None
    whole_answer: Annotated[
        str | None, typer.Option(help="Target of the whole answer.", rich_help_panel=SLO)
    ] = None
    percentile: Percentile = 95.0
    max_utilization: MaxUtilization = 0.8
