"""What a user wrote for `headroom plan`, as values; ImpossiblePlan says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from headroom.api.durations import Duration
from headroom.planner.ceiling import check_ceiling, check_headroom
from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan
from headroom.scaling.values import CostModel, Routing

ROUTINGS = {
    "random": Routing.RANDOM,
    "sticky": Routing.STICKY,
    "round-robin": Routing.ROUND_ROBIN,
    "least": Routing.LEAST_IN_FLIGHT,
    "two": Routing.POWER_OF_TWO,
    "central": Routing.CENTRAL,
}


def cost_of(
    fixed: str | None,
    per_item: str | None,
    max_batch: int | None,
    slots: int,
    service_time: str | None,
    cv: float | None,
) -> CostModel:
    """Read what a replica costs: a batch cost, or slots of a mean service time."""
    if service_time is not None:
        if fixed is not None or per_item is not None or max_batch is not None:
            raise ImpossiblePlan(
                "a replica has either --service-time or a batch cost, received both: "
                "leave out --fixed, --per-item and --max-batch"
            )
        fixed_s = seconds("--service-time", service_time)
        variation = 1.0 if cv is None else cv
        return CostModel(fixed_s=fixed_s, per_item_s=0.0, max_batch=1, cv=variation, slots=slots)
    if fixed is None and per_item is None:
        missing("the cost of a replica", "--fixed 6ms --per-item 4ms --max-batch 8")
    return CostModel(
        fixed_s=seconds("--fixed", fixed or "0s"),
        per_item_s=seconds("--per-item", per_item or "0s"),
        max_batch=1 if max_batch is None else max_batch,
        cv=cv or 0.0,
        slots=slots,
    )


def promise_of(
    target: str | None,
    percentile: float,
    ceiling: float,
    headroom: float,
    routing: str,
    gpus: int,
) -> Callable[[CostModel], Service]:
    """Read the promise; what needs no cost is checked before one is measured."""
    check_ceiling(ceiling)
    check_headroom(headroom)
    target_s = None if target is None else seconds("--target", target)
    share, reached_by = ratio(percentile), routing_of(routing)

    def service(cost: CostModel) -> Service:
        return Service(
            cost=cost,
            target_s=target_s,
            percentile=share,
            ceiling=ceiling,
            headroom=headroom,
            routing=reached_by,
            gpus_per_replica=gpus,
        )

    return service


def not_both(measure: str, given: str | None) -> None:
    """Refuse a cost that is given beside one that is measured."""
    if given is not None:
        raise ImpossiblePlan(
            f"a cost is either given or measured, received both: leave out --measure {measure}, "
            "or --fixed, --per-item and --service-time"
        )


def seconds(option: str, text: str) -> float:
    """Read a time as a resource would have it."""
    try:
        return Duration.parse(text).seconds
    except ValueError as error:
        raise ImpossiblePlan(f"{option}: {error}: write the unit, such as 120ms") from None


def ratio(percentile: float) -> float:
    """Read a percentile in percent."""
    if not 1 <= percentile < 100:
        raise ImpossiblePlan(
            f"--percentile: percentiles are in percent from 1 to below 100, received "
            f"{percentile:g}: 95 is the usual one"
        )
    return percentile / 100


def routing_of(text: str) -> Routing:
    """Read how requests reach the replicas."""
    if text not in ROUTINGS:
        raise ImpossiblePlan(
            f"--routing: one of {', '.join(ROUTINGS)}, received {text!r:.40}: "
            "a Kubernetes Service is sticky to keep-alive clients, and random to others"
        )
    return ROUTINGS[text]


def pair(text: str) -> tuple[str, str]:
    """Read name=value."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ImpossiblePlan(f"a stage is name=value, received {text!r:.60}: model=70ms")
    return name, value


def number(option: str, text: str) -> float:
    """Read a factor."""
    try:
        return float(text)
    except ValueError:
        raise ImpossiblePlan(f"{option}: a factor is a number, received {text!r:.40}: 2") from None


def missing(what: str, example: str) -> NoReturn:
    """Refuse for want of something."""
    raise ImpossiblePlan(f"{what} is needed, received nothing: try {example}")
