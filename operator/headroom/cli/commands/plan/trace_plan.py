"""Replicas for a trace, and what a rise leaves of a promise: in words and as JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from headroom.cli.commands.plan.output import counted, span
from headroom.cli.commands.plan.replicas import Shown
from headroom.planner.batching import choose_batching
from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan, positive
from headroom.planner.promise import FeasiblePromise, feasible_promise, floor_for
from headroom.planner.trace_plan import Rates, TracePlan, plan_trace
from headroom.simulator.arrivals.trace_file import RequestTrace, Trace, read_trace
from headroom.simulator.traces import shipped_trace, trace_names

ATTAINMENTS = (0.95, 0.99, 0.999)


def planned_trace(
    service: Service,
    trace: str,
    *,
    window_s: float,
    scale: float,
    cold_start_s: float | None,
    floor: int,
) -> Shown:
    """Size a trace window by window. Raises ImpossiblePlan, TraceError, OSError."""
    positive("--scale", scale, "1 is as recorded")
    read = _trace(trace)
    rates, window_s = rates_of(read, window_s)
    choice = choose_batching(service, float(rates.max()) * scale)
    plan = plan_trace(
        choice.plan.service, rates * scale, window_s, cold_start_s=cold_start_s or 0.0, floor=floor
    )
    found = None
    if cold_start_s is not None:
        found = feasible_promise(
            choice.plan.service,
            rates * scale,
            window_s,
            cold_start_s=cold_start_s,
            floor=max(1, floor),
        )
    report = {"name": read.name} | _trace_report(plan)
    lines = [
        f"{read.name}: {counted(len(plan.needed), 'window')} of {span(window_s)}",
        *_trace_lines(plan),
    ]
    if found is not None:
        report |= {"promise": _promise_report(found)}
        lines += ["", *_promise_lines(found)]
    return Shown(report=report, view=Group(*(Text(line) for line in lines)))


def promised(
    service: Service,
    *,
    rate_rps: float,
    risen_rps: float,
    lasts_s: float,
    within_s: float,
    cold_start_s: float,
    floor: int,
) -> Shown:
    """Say what a rise leaves feasible, and which floor would buy more. Raises ImpossiblePlan."""
    for name, value in (("--rate", rate_rps), ("--rises-to", risen_rps), ("--lasts", lasts_s)):
        positive(name, value, "give a rate or a time above 0")
    if lasts_s >= within_s:
        raise ImpossiblePlan(
            f"the rise is shorter than the whole time, received {span(lasts_s)} of "
            f"{span(within_s)}: give a longer --within"
        )
    window_s = within_s / 360
    rates = np.full(360, rate_rps)
    first = 120 if lasts_s <= 2 / 3 * within_s else 360 - round(lasts_s / window_s)
    rates[first : first + max(1, round(lasts_s / window_s))] = risen_rps
    found = feasible_promise(service, rates, window_s, cold_start_s=cold_start_s, floor=floor)
    floors = {
        wanted: floor_for(service, rates, window_s, cold_start_s=cold_start_s, attainment=wanted)
        for wanted in ATTAINMENTS
    }
    buys = ", ".join(f"{100 * wanted:g} % from {number}" for wanted, number in floors.items())
    lines = [*_promise_lines(found), f"floors that put more within reach: {buys}"]
    return Shown(
        report=_promise_report(found)
        | {"floorFor": {f"{wanted:g}": number for wanted, number in floors.items()}},
        view=Group(*(Text(line) for line in lines)),
    )


def rates_of(trace: Trace, window_s: float) -> tuple[Rates, float]:
    """Requests per second by window, [windows], and the window's length: at least a bin's."""
    positive("--window", window_s, "60s suits most")
    if isinstance(trace, RequestTrace):
        windows = max(1, math.ceil(trace.duration_s / window_s - 1e-9))
        counted = np.bincount((trace.arrivals_s // window_s).astype(np.int64), minlength=windows)
        return counted / window_s, window_s
    bins = max(1, round(window_s / trace.bin_s))
    whole = len(trace.requests) // bins * bins
    if whole == 0:
        raise ImpossiblePlan(
            f"--window fits into the trace of {span(trace.duration_s)}, received "
            f"{span(window_s)}: give a shorter one"
        )
    summed = trace.requests[:whole].reshape(-1, bins).sum(axis=1)
    return summed / (bins * trace.bin_s), bins * trace.bin_s


def _trace(name: str) -> Trace:
    path = Path(name)
    if name in trace_names():
        return shipped_trace(name)
    if not path.is_file():
        known = ", ".join(trace_names()) or "(none is shipped here)"
        raise ImpossiblePlan(
            f"--trace is a file or one of {known}; received {name!r:.80}: check the path"
        )
    with path.open("rb") as stream:
        return read_trace(stream, path.name)


def _trace_lines(plan: TracePlan) -> list[str]:
    hours = len(plan.needed) * plan.window_s / 3600
    return [
        (
            f"{counted(plan.peak, 'replica')} ({counted(plan.peak_gpus, 'GPU')}) at peak, "
            f"{plan.rates_rps.max():.4g}/s; "
            f"{plan.mean:.2f} replicas on average, {plan.rates_rps.mean():.4g}/s; {hours:.4g} h"
        ),
        (
            f"GPU-hours: {plan.gpu_hours:.1f} if replicas were there at once, "
            f"{plan.gpu_hours_ahead:.1f} if begun a cold start ahead, "
            f"{plan.gpu_hours_static:.1f} with the peak's all the time"
        ),
        f"scaling can save {100 * plan.saved_ratio:.0f} % of the static plan",
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


def _promise_lines(found: FeasiblePromise) -> list[str]:
    return [
        (
            f"with {counted(found.floor, 'replica')} always standing and "
            f"{span(found.cold_start_s)} of cold start, nobody without foresight can answer in time"
        ),
        (
            f"  more than {100 * found.attainment_at_most:.6g} % of the requests in whatever order "
            f"({found.missed_at_least:.0f} of {found.requests:.0f} for whom nothing stands in time)"
        ),
        (
            f"  more than {100 * found.attainment_in_order:.6g} % first come, first served "
            f"({found.missed_in_order:.0f} behind the backlog)"
        ),
    ]


def _promise_report(found: FeasiblePromise) -> dict[str, Any]:
    return {
        "floor": found.floor,
        "coldStartSeconds": found.cold_start_s,
        "requests": found.requests,
        "attainmentAtMost": found.attainment_at_most,
        "attainmentInOrderAtMost": found.attainment_in_order,
    }
