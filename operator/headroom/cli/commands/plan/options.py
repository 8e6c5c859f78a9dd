"""The options that the commands of `headroom plan` share, in the panels of their help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number; got {text!r:.40}") from None


Rate = Annotated[float, typer.Argument(metavar="RATE", help="Requests per second.", parser=_number)]
COST, SLO, SCALING = "Cost of a replica", "SLO", "Scaling"
OUTPUT = "Output"

MaxBatch = Annotated[
    int | None, typer.Option(help="Maximum batch size; default: 1.", rich_help_panel=COST)
]
Slots = Annotated[
    int, typer.Option(help="Concurrent executions of one replica.", rich_help_panel=COST)
]
Wait = Annotated[
    str, typer.Option(help="Batching wait of the server, if it has one.", rich_help_panel=COST)
]
RoutingOption = Annotated[
    str,
    typer.Option(
        help="Load balancing: random, sticky, round-robin, least (in flight), two (choices), "
        "central.",
        rich_help_panel=COST,
    ),
]
RequiredTarget = Annotated[str, typer.Option(help="Latency target.", rich_help_panel=SLO)]
Percentile = Annotated[
    float, typer.Option(help="Percentile of the target, in percent.", rich_help_panel=SLO)
]
MaxUtilization = Annotated[
    float, typer.Option(help="Utilization ceiling, at most 0.95.", rich_help_panel=SLO)
]
Headroom = Annotated[
    float,
    typer.Option(help="Additional share of the arrivals to plan for.", rich_help_panel=SLO),
]
ColdStart = Annotated[
    str | None,
    typer.Option(help="Time from requesting a replica to readiness.", rich_help_panel=SCALING),
]
MinReplicas = Annotated[
    int, typer.Option(help="Replicas that always run (minReplicas).", rich_help_panel=SCALING)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOptions:
    """Time of a request or a batch on one replica."""

    batch_overhead: Annotated[
        str | None, typer.Option(help="Time of a batch without its items.", rich_help_panel=COST)
    ] = None
    per_item_time: Annotated[
        str | None, typer.Option(help="Additional time per item of a batch.", rich_help_panel=COST)
    ] = None
    max_batch: MaxBatch = None
    slots: Slots = 1
    service_time: Annotated[
        str | None, typer.Option(help="Mean time of one request in a slot.", rich_help_panel=COST)
    ] = None
    cv: Annotated[
        float | None,
        typer.Option(
            help="Coefficient of variation of an execution; default: 1 with --service-time, else "
            "0.",
            rich_help_panel=COST,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """Routing of requests to the replicas, and the GPUs of one replica."""

    routing: RoutingOption = "random"
    gpus: Annotated[int, typer.Option(help="GPUs per replica.", rich_help_panel=COST)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SloOptions:
    """Target to keep, and the utilization ceiling of replicas."""

    target: Annotated[str | None, typer.Option(help="Latency target.", rich_help_panel=SLO)] = None
    percentile: Percentile = 95.0
    max_utilization: MaxUtilization = 0.8
    headroom: Headroom = 0.0
