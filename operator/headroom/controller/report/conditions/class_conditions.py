"""Conditions about promises per class. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus
from headroom.api.service_status.status_durations import duration_text
from headroom.controller.decide.measured_promise import FIELDS, NAMES
from headroom.controller.report.conditions.condition_result import TickResult, join
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.generation.promises.classes import SERVICE

NO_TRAFFIC = "no request with a promise ended in the last minute"


def unmeasured(tick: TickResult) -> tuple[ConditionStatus, StatusReason, str] | None:
    """Return why it is not known whether the promises of all classes are kept; None if it is."""
    classes = tick.classes
    if not classes.promises:
        return None
    if classes.judgement is not None:
        nothing = ConditionStatus.UNKNOWN, StatusReason.NO_TRAFFIC, NO_TRAFFIC
        return None if tick.tokens else nothing
    own = ", ".join(one.name for one in classes.promised if one.name != SERVICE)
    if not own:
        return None
    message = join(
        *(one.message for one in tick.tokens),
        f"the server does not count per class, so the promises of {own} are not measured; the "
        "strictest one is kept for all requests",
    )
    return ConditionStatus.UNKNOWN, StatusReason.CLASS_NOT_MEASURED, message


def infeasible(classes: ClassState) -> list[str]:
    """Return the promises of classes that an idle replica breaks, as text."""
    texts = []
    for one in classes.promises:
        for binding, target in one.by_binding.items():
            if one.name == SERVICE or (one.name, binding) not in classes.hopeless:
                continue
            what = f"p{100 * target.percentile:g} of {NAMES[FIELDS[binding]]} of class {one.name}"
            floor = duration_text(classes.floors_s[one.name, binding])
            most = duration_text(target.seconds)
            texts.append(f"{what} is {floor} at an idle replica, the target {most}")
    return texts
