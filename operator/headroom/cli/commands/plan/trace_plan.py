"""Prints replicas for a trace, and the attainment that is feasible at a peak, as text and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from headroom.cli.commands.plan.output import counted, span
from headroom.cli.commands.plan.replicas import Shown
from headroom.cli.commands.plan.trace_rates import named_trace, rates_of
from headroom.planner.batching import choose_batching
from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan, positive
from headroom.planner.feasibility import Feasibility, feasibility, min_replicas_for
from headroom.planner.trace_plan import TracePlan, plan_trace
from headroom.printable import printable

ATTAINMENTS = (0.95, 0.99, 0.999)


def planned_trace(
    service: Service,
    trace: str,
    *,
    window_s: float,
    scale: float,
    cold_start_s: float | None,
    min_replicas: int,
) -> Shown:
    """Size a trace window by window. Raises ImpossiblePlan, TraceError, OSError."""
    positive("--scale", scale, "1 keeps the recorded rates")
    read = named_trace(trace)
    rates, window_s = rates_of(read, window_s)
    choice = choose_batching(service, float(rates.max()) * scale)
    plan = plan_trace(
        choice.plan.service,
        rates * scale,
        window_s,
        cold_start_s=cold_start_s or 0.0,
        min_replicas=min_replicas,
    )
    found = None
    if cold_start_s is not None:
        found = feasibility(
            choice.plan.service,
            rates * scale,
            window_s,
            cold_start_s=cold_start_s,
            min_replicas=max(1, min_replicas),
        )
    report = {"name": read.name} | _trace_report(plan)
    lines = [
        f"{printable(read.name)}: {counted(len(plan.needed), 'window')} of {span(window_s)}",
        *_trace_lines(plan),
    ]
    if found is not None:
        report |= {"feasibility": _feasibility_report(found)}
        lines += ["", *_feasibility_lines(found)]
    return Shown(report=report, view=Group(*(Text(line) for line in lines)))


def planned_peak(
    service: Service,
    *,
    rate_rps: float,
    peak_rps: float,
    peak_duration_s: float,
    horizon_s: float,
    cold_start_s: float,
    min_replicas: int,
) -> Shown:
    """Compute the feasible attainment, and the minReplicas for more. Raises ImpossiblePlan."""
    given = (("--rate", rate_rps), ("--peak-rate", peak_rps), ("--peak-duration", peak_duration_s))
    for name, value in given:
        positive(name, value, "Give a rate or a time above 0")
    if peak_rps < rate_rps:
        raise ImpossiblePlan(
            f"--peak-rate must be at least --rate; got {peak_rps:g} and {rate_rps:g}. Give the "
            "rate before the peak as --rate."
        )
    if peak_duration_s >= horizon_s:
        raise ImpossiblePlan(
            f"--peak-duration must be shorter than --horizon; got {span(peak_duration_s)} and "
            f"{span(horizon_s)}. Give a longer --horizon."
        )
    window_s = horizon_s / 360
    rates = np.full(360, rate_rps)
    windows = round(peak_duration_s / window_s)
    first = 120 if peak_duration_s <= 2 / 3 * horizon_s else 360 - windows
    rates[first : first + max(1, windows)] = peak_rps
    found = feasibility(
        service, rates, window_s, cold_start_s=cold_start_s, min_replicas=min_replicas
    )
    needed = {
        wanted: min_replicas_for(
            service, rates, window_s, cold_start_s=cold_start_s, attainment=wanted
        )
        for wanted in ATTAINMENTS
    }
    listed = ", ".join(f"{number} for {100 * wanted:g} %" for wanted, number in needed.items())
    lines = [*_feasibility_lines(found), f"Required minReplicas: {listed}."]
    return Shown(
        report=_feasibility_report(found)
        | {"minReplicasFor": {f"{wanted:g}": number for wanted, number in needed.items()}},
        view=Group(*(Text(line) for line in lines)),
    )


def _trace_lines(plan: TracePlan) -> list[str]:
    hours = len(plan.needed) * plan.window_s / 3600
    return [
        (
            f"{counted(plan.peak, 'replica')} ({counted(plan.peak_gpus, 'GPU')}) at peak, "
            f"{plan.rates_rps.max():.4g} req/s; {plan.mean:.2f} replicas on average, "
            f"{plan.rates_rps.mean():.4g} req/s; {hours:.4g} h"
        ),
        (
            f"GPU-hours: {plan.gpu_hours:.1f} without cold starts, "
            f"{plan.gpu_hours_ahead:.1f} if replicas start a cold start ahead, "
            f"{plan.gpu_hours_static:.1f} with the peak replicas all the time"
        ),
        f"scaling can save {100 * plan.saved_ratio:.0f} % of the static GPU-hours",
    ]


def _trace_report(plan: TracePlan) -> dict[str, Any]:
    return {
        "windowSeconds": plan.window_s,
        "windows": len(plan.needed),
        "peakReplicas": plan.peak,
        "peakGpus": plan.peak_gpus,
        "meanReplicas": plan.mean,
        "gpuHours": plan.gpu_hours,
        "gpuHoursAhead": plan.gpu_hours_ahead,
        "gpuHoursStaticPeak": plan.gpu_hours_static,
        "replicas": plan.needed.tolist(),
    }


def _feasibility_lines(found: Feasibility) -> list[str]:
    return [
        (
            f"With minReplicas={found.min_replicas} and a {span(found.cold_start_s)} cold start, "
            f"at most {100 * found.attainment_at_most:.6g} % of the requests can meet the target"
        ),
        (
            f"({found.missed_at_least:.0f} of {found.requests:.0f} arrive before capacity exists). "
            f"First come, first served: at most {100 * found.attainment_in_order:.6g} %."
        ),
    ]


def _feasibility_report(found: Feasibility) -> dict[str, Any]:
    return {
        "minReplicas": found.min_replicas,
        "coldStartSeconds": found.cold_start_s,
        "requests": found.requests,
        "attainmentAtMost": found.attainment_at_most,
        "attainmentInOrderAtMost": found.attainment_in_order,
    }
