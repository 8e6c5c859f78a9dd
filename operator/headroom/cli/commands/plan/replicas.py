"""Prints the replicas for a constant rate, as table and JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.cli.commands.plan.arguments import ROUTINGS
from headroom.cli.commands.plan.output import NO_REDUNDANCY, counted, finite, ms
from headroom.planner.batching import BatchChoice, choose_batching, worst_latency_s
from headroom.planner.ceiling import CeilingPlan, replicas_under_ceiling
from headroom.planner.demand import Service
from headroom.planner.queueing import in_system
from headroom.planner.replicas import PERCENTILES, Expectation, ReplicaPlan, plan_replicas
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A plan as JSON and as text."""

    report: dict[str, Any]
    view: RenderableType


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRate(Shown):
    """A plan for a rate, with its source."""

    plan: ReplicaPlan


def planned_rate(service: Service, arrival_rps: float, wait_s: float) -> ShownRate:
    """Choose the batch size and the replicas for a constant rate. Raises ImpossiblePlan."""
    choice = choose_batching(service, arrival_rps)
    plan = choice.plan
    ceiling = replicas_under_ceiling(
        arrival_rps,
        plan.service.cost.full_batch_rps,
        ceiling=service.ceiling,
        headroom=service.headroom,
    )
    worst_s = worst_latency_s(plan.service.cost, wait_s)
    return ShownRate(
        report=_rate_report(choice, ceiling, worst_s),
        view=Group(
            *(Text(line) for line in _rate_lines(choice, ceiling, wait_s, worst_s)),
            Text(),
            _rate_table(plan),
        ),
        plan=plan,
    )


def _rate_lines(
    choice: BatchChoice, ceiling: CeilingPlan, wait_s: float, worst_s: float
) -> list[str]:
    plan, service = choice.plan, choice.plan.service
    cost = service.cost
    lines = [
        (
            f"{counted(plan.replicas, 'replica')} for {plan.arrival_rps:g} req/s "
            f"({_why(plan, service.ceiling)})"
        ),
        (
            f"capacity of one replica: {cost.full_batch_rps:.4g} req/s, {ceiling.usable_rps:.4g} "
            f"below the ceiling; of all: {plan.carries_rps:.4g} within target and ceiling"
        ),
    ]
    if plan.replicas == 1:
        lines.append(NO_REDUNDANCY)
    if service.headroom:
        lines.append(
            f"with {100 * service.headroom:g} % headroom the ceiling requires "
            f"{ceiling.with_headroom} (of the arrivals) to {ceiling.with_spare_replicas} (of the "
            f"{ceiling.replicas} replicas)"
        )
    if cost.max_batch > 1:
        allowed = (
            ""
            if math.isinf(choice.longest_wait_s)
            else f" (up to {ms(choice.longest_wait_s)} would meet the target)"
        )
        lines.append(
            f"maximum batch size {choice.max_batch} ({ms(cost.batch_s(cost.max_batch))} when "
            f"full), batching wait 0 ms{allowed}"
        )
        if wait_s:
            lines.append(f"with a batching wait of {ms(wait_s)}: {ms(worst_s)} without queueing")
    if cost.max_batch == 1:
        busy = in_system(plan.arrival_rps, cost.batch_s(1))
        lines.append(f"{busy:.4g} concurrent executions on average (Little's law)")
    if plan.binding is Reason.LATENCY_MODEL:
        lines.append(_assumptions(plan))
    return lines


def _assumptions(plan: ReplicaPlan) -> str:
    """Return the assumed options, and the number of replicas if better routing needs fewer."""
    service = plan.service
    routing = next(word for word, one in ROUTINGS.items() if one is service.routing)
    assumed = f"for --cv {service.cost.cv:g} and --routing {routing}"
    least = replace(service, routing=Routing.LEAST_IN_FLIGHT)
    fewer = plan_replicas(least, plan.arrival_rps).replicas
    return f"{assumed}; --routing least needs {fewer}" if fewer < plan.replicas else assumed


def _why(plan: ReplicaPlan, ceiling: float) -> str:
    rule = f"the {100 * ceiling:g} % utilization ceiling"
    if plan.by_latency is None:
        return f"{rule}; no latency target"
    if plan.by_latency == plan.by_utilization:
        return f"latency and {rule} both require {plan.by_latency}"
    if plan.binding is Reason.LATENCY_MODEL:
        return f"latency; {rule} requires {plan.by_utilization}"
    return f"{rule}; latency requires {plan.by_latency}"


def _rate_table(plan: ReplicaPlan) -> Table:
    table = Table(box=None, pad_edge=False)
    shares = sorted({*PERCENTILES, plan.service.percentile})
    columns = ["replicas", "utilization", *(f"p{100 * p:g}" for p in shares)]
    for column in (*columns, "GPU-h/day", "meets SLO"):
        table.add_column(column, justify="right")
    for row in (plan.fewer, plan.chosen, plan.more):
        if row is not None:
            chosen = row is plan.chosen
            latency = dict(zip(PERCENTILES, row.latency_s, strict=True))
            latency[plan.service.percentile] = row.slo_latency_s
            table.add_row(
                f"{row.replicas}{' *' if chosen else '  '}",
                f"{100 * row.utilization:.1f} %",
                *(ms(latency[p]) for p in shares),
                f"{row.gpu_hours_per_day:g}",
                "yes" if row.holds else "no",
                style="bold" if chosen else "",
            )
    return table


def _rate_report(choice: BatchChoice, ceiling: CeilingPlan, worst_s: float) -> dict[str, Any]:
    plan = choice.plan
    rows = [row for row in (plan.fewer, plan.chosen, plan.more) if row is not None]
    return {
        "replicas": plan.replicas,
        "binding": str(plan.binding),
        "byLatency": plan.by_latency,
        "byUtilization": plan.by_utilization,
        "maxBatch": choice.max_batch,
        "waitSeconds": choice.wait_s,
        "longestWaitSeconds": finite(choice.longest_wait_s),
        "unqueuedWorstSeconds": worst_s,
        "fullRps": plan.service.cost.full_batch_rps,
        "usableRps": ceiling.usable_rps,
        "carriesRps": plan.carries_rps,
        "withHeadroom": {
            "onArrivals": ceiling.with_headroom,
            "onReplicas": ceiling.with_spare_replicas,
        },
        "expected": [_expected(row, plan) for row in rows],
    }


def _expected(row: Expectation, plan: ReplicaPlan) -> dict[str, Any]:
    latency = {
        f"p{100 * p:g}Seconds": finite(value)
        for p, value in zip(PERCENTILES, row.latency_s, strict=True)
    }
    return {
        "replicas": row.replicas,
        "utilization": row.utilization,
        **latency,
        f"p{100 * plan.service.percentile:g}Seconds": finite(row.slo_latency_s),
        "meetsSlo": row.holds,
        "gpuHoursPerDay": row.gpu_hours_per_day,
    }
