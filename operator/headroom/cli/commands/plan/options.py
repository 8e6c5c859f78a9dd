"""The options that `headroom plan` and its commands share, in the panels of their help."""

from __future__ import annotations

from typing import Annotated

import typer

LOAD, COST, PROMISE, TRACE = "What arrives", "What a replica costs", "The promise", "With --trace"
MEASURE, OUTPUT = "With --measure", "Output"

Json = Annotated[
    bool,
    typer.Option("--json", help="Print JSON; null is without bound.", rich_help_panel=OUTPUT),
]
Fixed = Annotated[
    str | None, typer.Option(help="Time of a batch before its items.", rich_help_panel=COST)
]
PerItem = Annotated[
    str | None, typer.Option(help="Time that each item adds to a batch.", rich_help_panel=COST)
]
MaxBatch = Annotated[
    int | None, typer.Option(help="Largest batch; 1 if not given.", rich_help_panel=COST)
]
Slots = Annotated[
    int, typer.Option(help="Executions side by side in one replica.", rich_help_panel=COST)
]
ServiceTime = Annotated[
    str | None, typer.Option(help="Mean time of one request in a slot.", rich_help_panel=COST)
]
Variation = Annotated[
    float | None,
    typer.Option(
        help="Coefficient of variation of an execution; 1 with --service-time, else 0.",
        rich_help_panel=COST,
    ),
]
Target = Annotated[str | None, typer.Option(help="Latency promised.", rich_help_panel=PROMISE)]
Percentile = Annotated[
    float, typer.Option(help="In percent, of the target.", rich_help_panel=PROMISE)
]
Ceiling = Annotated[
    float,
    typer.Option(help="Utilization that no plan passes, up to 0.95.", rich_help_panel=PROMISE),
]
Headroom = Annotated[
    float,
    typer.Option(help="Share of the arrivals to be ready for on top.", rich_help_panel=PROMISE),
]
RoutingOption = Annotated[
    str,
    typer.Option(
        help="random, sticky, round-robin, least (in flight), two (choices), central.",
        rich_help_panel=COST,
    ),
]
Gpus = Annotated[int, typer.Option(help="GPUs of one replica.", rich_help_panel=COST)]
ColdStart = Annotated[
    str | None,
    typer.Option(help="From asking for a replica to its readiness.", rich_help_panel=TRACE),
]
Floor = Annotated[
    int, typer.Option(help="Replicas that always stand (minReplicas).", rich_help_panel=TRACE)
]
