"""The arguments of `headroom plan` as values; ImpossiblePlan says which rule one breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from headroom.api.durations import Duration
from headroom.cli.commands.plan.options import CostOptions, ServingOptions, SloOptions
from headroom.planner.ceiling import check_ceiling, check_headroom
from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing

ROUTINGS = {
    "random": Routing.RANDOM,
    "sticky": Routing.STICKY,
    "round-robin": Routing.ROUND_ROBIN,
    "least": Routing.LEAST_IN_FLIGHT,
    "two": Routing.POWER_OF_TWO,
    "central": Routing.CENTRAL,
}


def cost_of(given: CostOptions) -> CostModel:
    """Return the cost of a replica: a batch cost, or slots with a mean service time."""
    overhead, per_item = given.batch_overhead, given.per_item_time
    if given.service_time is not None:
        if overhead is not None or per_item is not None or given.max_batch is not None:
            raise ImpossiblePlan(
                "the cost of a replica must be either --service-time or a batch cost; got both. "
                "Leave out --batch-overhead, --per-item-time and --max-batch."
            )
        return CostModel(
            fixed_s=seconds("--service-time", given.service_time),
            per_item_s=0.0,
            max_batch=1,
            cv=1.0 if given.cv is None else given.cv,
            slots=given.slots,
        )
    if overhead is None and per_item is None:
        missing(
            "the cost of a replica",
            "--batch-overhead 6ms --per-item-time 4ms --max-batch 8, or --service-time 2s with "
            "--slots for a server that does not batch",
        )
    return CostModel(
        fixed_s=seconds("--batch-overhead", overhead or "0s"),
        per_item_s=seconds("--per-item-time", per_item or "0s"),
        max_batch=1 if given.max_batch is None else given.max_batch,
        cv=given.cv or 0.0,
        slots=given.slots,
    )


def service_with(serving: ServingOptions, slo: SloOptions) -> Callable[[CostModel], Service]:
    """Return the service as a function of its cost, after checking all that needs no cost."""
    check_ceiling(slo.max_utilization)
    check_headroom(slo.headroom)
    target_s = None if slo.target is None else seconds("--target", slo.target)
    share, balancing = ratio(slo.percentile), routing_of(serving.routing)

    def service(cost: CostModel) -> Service:
        return Service(
            cost=cost,
            target_s=target_s,
            percentile=share,
            ceiling=slo.max_utilization,
            headroom=slo.headroom,
            routing=balancing,
            gpus_per_replica=serving.gpus,
        )

    return service


def seconds(option: str, text: str) -> float:
    """Return a duration in seconds."""
    try:
        return Duration.parse(text).seconds
    except ValueError as error:
        raise ImpossiblePlan(f"{option}: {error}. Write the unit, such as 120ms.") from None


def ratio(percentile: float) -> float:
    """Return a percentile in percent as a share."""
    if not 1 <= percentile < 100:
        raise ImpossiblePlan(
            f"--percentile must be at least 1 and below 100 (percent); got {percentile:g}. "
            "The usual one is 95."
        )
    return percentile / 100


def routing_of(text: str) -> Routing:
    """Return the load balancing of this name."""
    if text not in ROUTINGS:
        raise ImpossiblePlan(
            f"--routing must be one of {', '.join(ROUTINGS)}; got {text!r:.40}. A Kubernetes "
            "Service is sticky for keep-alive clients, and random otherwise."
        )
    return ROUTINGS[text]


def pair(text: str) -> tuple[str, str]:
    """Return name and value of name=value."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ImpossiblePlan(
            f"a stage must be name=value; got {text!r:.60}. Give one such as model=70ms."
        )
    return name, value


def number(option: str, text: str) -> float:
    """Return a factor."""
    try:
        return float(text)
    except ValueError:
        raise ImpossiblePlan(
            f"{option}: the factor must be a number; got {text!r:.40}. 2 is twice as fast."
        ) from None


def missing(what: str, example: str) -> NoReturn:
    """Raise ImpossiblePlan for a missing option."""
    raise ImpossiblePlan(f"{what} must be given; got nothing. Try {example}.")
