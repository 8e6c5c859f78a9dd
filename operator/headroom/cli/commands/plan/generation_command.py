"""The command `headroom plan generation`."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from typing import Annotated

import typer

from headroom.cli.cluster_options import Output, OutputOption
from headroom.cli.commands.plan.generation_options import (
    PromiseOptions,
    ReplicaOptions,
    RequestOptions,
)
from headroom.cli.commands.plan.options import COST, Rate, RoutingOption
from headroom.cli.commands.plan.output import exit_on_invalid_input, show


def generation(
    rate: Rate,
    requests: RequestOptions,
    replica: ReplicaOptions,
    promises: PromiseOptions,
    routing: RoutingOption = "random",
    gpu_price: Annotated[
        float, typer.Option(help="Price of a GPU-hour.", rich_help_panel=COST)
    ] = 0.0,
    pools: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Print the InferenceServices of a prefill and a decode pool instead, for the "
            "Deployments NAME-prefill and NAME-decode of a vLLM.",
            rich_help_panel="Pools",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Plan replicas, cost and server settings for a generating model; name the limiting bound."""
    from headroom.cli.commands.plan.generation import (
        GenerationOptions,
        planned_generation,
        planned_pools,
    )

    with exit_on_invalid_input():
        options = GenerationOptions(
            rate_rps=rate,
            requests=requests,
            replica=replica,
            promises=promises,
            routing=routing,
            gpu_price=gpu_price,
        )
        if pools is not None:
            show(*planned_pools(options, pools), output)
        else:
            show(*planned_generation(options), output)
