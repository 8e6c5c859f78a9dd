"""The text of `headroom explain`: a service's last decision, its signals and the alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.api.reasons import StatusReason
from headroom.api.service_spec.service_level import ServiceLevel
from headroom.api.service_status.conditions import Condition, ConditionStatus, ConditionType
from headroom.api.service_status.decision_status import DecisionStatus
from headroom.api.service_status.status import Status
from headroom.api.service_status.status_durations import seconds_of
from headroom.cli.commands.explanation_lines import promise_lines, share, signals_line
from headroom.console.service_state import needing_attention
from headroom.scaling.values.signals import Freshness

_FIRST = (ConditionType.READY, ConditionType.ABLE_TO_SCALE)
"""Conditions without which the decision has no effect: their reasons are printed above it."""


def explained(service: Mapping[str, Any]) -> RenderableType:
    """Format the last decision, its counterfactuals, and the conditions that need attention."""
    status = Status.read(service.get("status"))
    decision = status.decision
    parts: list[RenderableType] = [_heading(service, status)]
    conditions = needing_attention(status.conditions)
    first = [one for one in conditions if one.type in _FIRST and _is_false(one)][:1]
    parts += [Text(f"{one.reason}: {one.message}", style="bold red") for one in first]
    if decision is None and not first:
        parts.append(Text(_no_decision(service["metadata"])))
    elif decision is None:
        parts.append(Text("No decision was made yet."))
    else:
        parts += [_doubt(status), _decision(decision), Text(signals_line(service, status))]
        parts += [Text(line) for line in promise_lines(status)]
        if decision.counterfactuals:
            parts += [Text(), _counterfactuals(decision, _promised_s(service, status))]
        if decision.recommendations:
            rows = [(one.rule, str(one.replicas), one.detail) for one in decision.recommendations]
            heads = ("rule", "replicas", "because")
            parts += [Text(), _table("What each rule requires", heads, rows, numbers=(1,))]
    others = [one for one in conditions if one not in first and not _refers(one, conditions)]
    others = [one for one in others if one.reason not in {each.reason for each in first}]
    if others:
        heads = ("condition", "reason", "message")
        rows = _grouped(others)
        parts += [Text(), _table("Conditions that need attention", heads, rows)]
    if follow := [one.type for one in conditions if one not in [*first, *others]]:
        parts += [Text(), Text(f"Not known, or False, for the same reasons: {', '.join(follow)}")]
    return Group(*parts)


def _is_false(condition: Condition) -> bool:
    """Return whether a condition is False."""
    return condition.status is ConditionStatus.FALSE


def _refers(condition: Condition, shown: Sequence[Condition]) -> bool:
    """Return whether a condition only names another one that is shown."""
    return condition.message.endswith(tuple(f"see {one.type}" for one in shown))


def _grouped(conditions: Sequence[Condition]) -> list[tuple[str, str, str]]:
    """Return one row for the conditions that say the same."""
    names: dict[tuple[str, str], list[str]] = {}
    for one in conditions:
        names.setdefault((one.reason, one.message), []).append(f"{one.type}={one.status}")
    return [("\n".join(types), *said) for said, types in names.items()]


def _no_decision(metadata: Mapping[str, Any]) -> str:
    return (
        "No decision yet: the operator has not evaluated this service. See why with "
        f"headroom doctor -n {metadata['namespace']}"
    )


def _heading(service: Mapping[str, Any], status: Status) -> Text:
    metadata = service["metadata"]
    states = {
        "ready": status.ready_replicas,
        "warming": status.warming_replicas,
        "unschedulable": status.unschedulable_replicas,
        "broken": status.broken_replicas,
    }
    counts = ", ".join(f"{number} {state}" for state, number in states.items() if number)
    text = Text(f"{metadata['namespace']}/{metadata['name']}", style="bold")
    noun = "replica" if status.replicas == 1 else "replicas"
    text.append(f": {status.replicas} {noun}", style="not bold")
    return text.append(f" ({counts})" if counts else "", style="not bold")


def _doubt(status: Status) -> Text:
    """Return a note beyond the decision's reason, which may be that of older metrics."""
    signals = status.signals
    if signals is None or signals.freshness == Freshness.FRESH or not status.ready_replicas:
        return Text(end="")
    words = f"Metrics are {signals.freshness.lower()}"
    if status.reason == StatusReason.COLLECTING_METRICS:
        words = "Metrics are collected until rates are known"
    doubt = f"{words}: no replica is removed, and what follows may be out of date."
    return Text(doubt, style="bold yellow")


def _decision(decision: DecisionStatus) -> Text:
    text = Text(decision.reason, style="bold cyan")
    return text.append(f": {decision.message} ({decision.time})", style="not bold default")


def _promised_s(service: Mapping[str, Any], status: Status) -> float | None:
    """Return the time that stands for all promises of a service sized by a model of its engine.

    None for other services, whose expected latency is that of a request.
    """
    if status.generation is None or status.generation.sized_by != "Model":
        return None
    try:
        return ServiceLevel.model_validate(service["spec"]["slo"]).whole_answer.seconds
    except (KeyError, TypeError, ValueError):  # admitted by another version's schema
        return None


def _counterfactuals(decision: DecisionStatus, promised_s: float | None) -> Table:
    chosen = [row.replicas == decision.replicas for row in decision.counterfactuals]

    def expected(latency: str) -> str:
        taken_s = None if promised_s is None else seconds_of(latency)
        if promised_s is None or taken_s is None or math.isinf(taken_s):
            return latency
        return f"{taken_s / promised_s:.0%}"

    rows = [
        (f"{row.replicas}{' *' if mark else '  '}", expected(row.latency), share(row.utilization))
        for row, mark in zip(decision.counterfactuals, chosen, strict=True)
    ]
    heads = (
        "replicas",
        "latency" if promised_s is None else "of the tightest promise",
        "utilization",
    )
    return _table("What the model expects", heads, rows, numbers=(0, 1, 2), bold=chosen)


def _table(
    title: str,
    heads: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    numbers: tuple[int, ...] = (),
    bold: list[bool] | None = None,
) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for index, head in enumerate(heads):
        table.add_column(head, justify="right" if index in numbers else "left")
    for index, row in enumerate(rows):
        # as it is: in a str, brackets that a tenant writes would be markup
        table.add_row(*map(Text, row), style="bold" if bold and bold[index] else "")
    return table
