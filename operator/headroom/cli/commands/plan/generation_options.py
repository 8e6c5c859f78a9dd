"""The options of `headroom plan generation`, in the panels of its help."""

from __future__ import annotations

from typing import Annotated

import typer

from headroom.cli.commands.plan.options import COST, SLO

REQUESTS = "Requests"

Prompt = Annotated[float, typer.Option(help="Mean tokens of a prompt.", rich_help_panel=REQUESTS)]
Answer = Annotated[
    float,
    typer.Option("--answer", help="Mean tokens of an answer.", rich_help_panel=REQUESTS),
]
PromptCv = Annotated[
    float,
    typer.Option(
        help="Deviation of prompts over their mean; 0: all alike.", rich_help_panel=REQUESTS
    ),
]
AnswerCv = Annotated[
    float,
    typer.Option(help="Deviation of answers over their mean.", rich_help_panel=REQUESTS),
]
Cached = Annotated[
    float,
    typer.Option(
        help="Share of prompt tokens found in the prefix cache.", rich_help_panel=REQUESTS
    ),
]
Accepted = Annotated[
    float,
    typer.Option(help="Tokens per step with speculation.", rich_help_panel=REQUESTS),
]
On = Annotated[
    str | None,
    typer.Option(
        help="A model on GPUs of the table, such as qwen3-32b/2xh100.", rich_help_panel=COST
    ),
]
Measure = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A replica under load, whose metrics show the cost.",
        rich_help_panel=COST,
    ),
]
Profile = Annotated[
    str, typer.Option(help="Server at that URL, as in runtime.profile.", rich_help_panel=COST)
]
Model = Annotated[
    str | None, typer.Option(help="Model at that URL, if several.", rich_help_panel=COST)
]
Watch = Annotated[
    str, typer.Option(help="Time for which the URL is watched.", rich_help_panel=COST)
]
IterationMs = Annotated[
    float | None,
    typer.Option(help="Milliseconds of an iteration without work.", rich_help_panel=COST),
]
PromptTokenMs = Annotated[
    float | None,
    typer.Option(help="Milliseconds per prompt token.", rich_help_panel=COST),
]
SequenceMs = Annotated[
    float | None,
    typer.Option(
        help="Milliseconds per decoding sequence; default: the usual share of a prompt token.",
        rich_help_panel=COST,
    ),
]
ContextTokenMs = Annotated[
    float | None,
    typer.Option(
        help="Milliseconds per token of context; default: the usual share of a prompt token.",
        rich_help_panel=COST,
    ),
]
KvTokens = Annotated[
    float | None,
    typer.Option(help="Tokens that the KV memory holds.", rich_help_panel=COST),
]
MaxSequences = Annotated[
    int | None,
    typer.Option(
        help="Sequences at once, at most; default: those of the server, else 256.",
        rich_help_panel=COST,
    ),
]
IterationTokens = Annotated[
    int | None,
    typer.Option(
        help="Tokens of an iteration, at most; default: those of the server, else 8192.",
        rich_help_panel=COST,
    ),
]
GpusOrTable = Annotated[int | None, typer.Option(help="GPUs per replica.", rich_help_panel=COST)]
GpuPrice = Annotated[float, typer.Option(help="Price of a GPU-hour.", rich_help_panel=COST)]
FirstToken = Annotated[
    str | None, typer.Option(help="Target of the time to first token.", rich_help_panel=SLO)
]
OutputToken = Annotated[
    str | None,
    typer.Option(help="Target of the time per output token.", rich_help_panel=SLO),
]
WholeAnswer = Annotated[
    str | None, typer.Option(help="Target of the whole answer.", rich_help_panel=SLO)
]
