"""Conditions about token SLOs. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus
from headroom.api.service_status.status_durations import duration_text
from headroom.controller.report.conditions import class_conditions
from headroom.controller.report.conditions.condition_result import TickResult, join
from headroom.scaling.values.token_decision import GenerationDecision
from headroom.scaling.values.tokens import Binding

_NAMES = {
    Binding.TIME_TO_FIRST_TOKEN: "time to first token",
    Binding.TIME_PER_OUTPUT_TOKEN: "time per output token",
    Binding.LATENCY: "latency",
}


def token_feasibility(
    tick: TickResult, generation: GenerationDecision
) -> tuple[ConditionStatus, StatusReason, str]:
    """Return whether an idle replica keeps each promise, and name those that it does not."""
    broken, texts = generation.infeasible, class_conditions.infeasible(tick.classes)
    if not broken and not texts and not tick.decision.feasible:
        broken = tuple(_NAMES)
    kept = not broken and not texts
    for binding, one in (
        (Binding.TIME_TO_FIRST_TOKEN, generation.first_token),
        (Binding.TIME_PER_OUTPUT_TOKEN, generation.output_token),
        (Binding.LATENCY, generation.latency),
    ):
        if one is None or one.floor_s is None or (not kept and binding not in broken):
            continue
        what = f"p{100 * one.target.percentile:g} of {_NAMES[binding]}"
        floor, target = duration_text(one.floor_s), duration_text(one.target.seconds)
        texts.append(f"{what} is {floor} at an idle replica, the target {target}")
    if kept:
        return ConditionStatus.TRUE, StatusReason.FEASIBLE, join(*texts)
    hint = (
        "more replicas cannot help and none are added for it: increase the target, or use a "
        "faster accelerator or model"
    )
    return ConditionStatus.FALSE, StatusReason.SLO_INFEASIBLE, join(*texts, hint)
