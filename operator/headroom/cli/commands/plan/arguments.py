"""The arguments of `headroom plan` as values; ImpossiblePlan says which rule one breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from headroom.api.durations import Duration
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


def cost_of(
    batch_overhead: str | None,
    per_item_time: str | None,
    max_batch: int | None,
    slots: int,
    service_time: str | None,
    cv: float | None,
) -> CostModel:
    """Return the cost of a replica: a batch cost, or slots with a mean service time."""
    if service_time is not None:
        if batch_overhead is not None or per_item_time is not None or max_batch is not None:
            raise ImpossiblePlan(
                "the cost of a replica must be either --service-time or a batch cost; got both. "
                "Leave out --batch-overhead, --per-item-time and --max-batch."
            )
        service_s = seconds("--service-time", service_time)
        variation = 1.0 if cv is None else cv
        return CostModel(fixed_s=service_s, per_item_s=0.0, max_batch=1, cv=variation, slots=slots)
    if batch_overhead is None and per_item_time is None:
        missing("the cost of a replica", "--batch-overhead 6ms --per-item-time 4ms --max-batch 8")
    return CostModel(
        fixed_s=seconds("--batch-overhead", batch_overhead or "0s"),
        per_item_s=seconds("--per-item-time", per_item_time or "0s"),
        max_batch=1 if max_batch is None else max_batch,
        cv=cv or 0.0,
        slots=slots,
    )


def service_with(
    target: str | None,
    percentile: float,
    max_utilization: float,
    headroom: float,
    routing: str,
    gpus: int,
) -> Callable[[CostModel], Service]:
    """Return the service as a function of its cost, after checking all that needs no cost."""
    check_ceiling(max_utilization)
    check_headroom(headroom)
    target_s = None if target is None else seconds("--target", target)
    share, balancing = ratio(percentile), routing_of(routing)

    def service(cost: CostModel) -> Service:
        return Service(
            cost=cost,
            target_s=target_s,
            percentile=share,
            ceiling=max_utilization,
            headroom=headroom,
            routing=balancing,
            gpus_per_replica=gpus,
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
