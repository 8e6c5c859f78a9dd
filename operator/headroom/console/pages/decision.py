"""The decision on a service's page: message, one more or one fewer replica, and each rule."""

from __future__ import annotations

import math
from collections.abc import Iterator

from headroom.charts.markup import Markup, joined, tag
from headroom.console.pages import formatting as fmt
from headroom.console.pages.frame import simple_table
from headroom.console.summary import ServiceSummary
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Decision, DemandKnown


def decision_section(row: ServiceSummary, last: Evaluation | None) -> Markup:
    """Render the decision, its counterfactuals and what each rule requires."""
    if last is None:
        said = tag("p", tag("b", row.reason), f" {row.message or ''}") if row.reason else None
        nothing = tag("p", "No decision yet.", class_="empty")
        return tag("section", tag("h2", "Decision"), said or nothing, class_="card")
    decision, promise = last.decision, "; ".join(_promise(row))
    return joined(
        (
            tag(
                "section",
                tag("h2", "Decision"),
                tag("p", tag("b", decision.reason.value), class_="reason"),
                tag("p", _sentences(decision.message)),
                tag("p", _sentences(promise), class_="note") if promise else None,
                class_="card",
            ),
            _counterfactuals(decision, last),
            _rules(decision),
        )
    )


def _promise(row: ServiceSummary) -> Iterator[str]:
    """Yield the demand that arrivals do not show, and the learned margin."""
    if row.demand is not None and row.demand.known != DemandKnown.EXACT:
        yield f"demand is {row.demand.sentence}"
    if row.slo is not None and row.slo.sentence:
        yield row.slo.sentence


def _sentences(message: str) -> Markup:
    """Put each clause on a line: they are a list of reasons."""
    return joined(tag("span", part, class_="clause") for part in message.split("; "))


def _counterfactuals(decision: Decision, last: Evaluation) -> Markup | None:
    if not decision.counterfactuals:
        return None
    count = last.accelerators_per_replica
    by_promises = decision.generation is not None and decision.generation.identification.known
    rows = []
    for one in decision.counterfactuals:
        chosen = one.replicas == decision.replicas
        late = decision.correction * one.latency_s > last.policy.latency_target_s
        over = one.utilization > last.policy.utilization_ceiling
        rows.append(
            tag(
                "tr",
                tag("th", str(one.replicas), " (decided)" if chosen else None, scope="row"),
                _judged(_expected_latency(one.latency_s, last, by_promises), late),
                _judged(fmt.percent(one.utilization), over),
                tag(
                    "td",
                    fmt.number(None if count is None else one.replicas * count),
                    class_="number",
                ),
                class_="chosen" if chosen else None,
            )
        )
    percentile = f"p{100 * last.policy.latency_percentile:g}"
    expected = "Of the tightest promise" if by_promises else percentile
    heads = ("Replicas", expected, "Utilization", "Accelerators")
    return tag(
        "section",
        tag("h2", "One replica more or fewer"),
        simple_table(heads, rows, numbers=(1, 2, 3)),
        tag("p", _expected(decision.correction), class_="note"),
        class_="card",
    )


def _expected_latency(latency_s: float, last: Evaluation, by_promises: bool) -> str:
    """Return a latency, or where it stands for several promises the largest share of one."""
    if by_promises and math.isfinite(latency_s):
        return fmt.percent(latency_s / last.policy.latency_target_s)
    return fmt.seconds(latency_s)


def _expected(correction: float) -> str:
    """Return the note about the figures, with the correction of the model."""
    said = "Expected by the model at the present arrivals; ! exceeds a limit."
    if abs(correction - 1.0) < 0.05:
        return said
    factor = f"{correction:.2g}"
    return f"{said} Measured latency is {factor} times as long; the decision corrects for it."


def _judged(text: str, broken: bool) -> Markup:
    mark = tag("span", " !", class_="bad", aria_label=" exceeds a limit") if broken else None
    return tag("td", text, mark, class_="number" + (" bad" if broken else ""))


def _rules(decision: Decision) -> Markup | None:
    if not decision.recommendations:
        return None
    rows = [
        tag(
            "tr",
            tag("th", one.rule.value, scope="row"),
            tag("td", fmt.number(one.replicas), class_="number"),
            tag("td", one.detail, class_="text"),
        )
        for one in decision.recommendations
    ]
    return tag(
        "section",
        tag("h2", "What each rule requires"),
        simple_table(("Rule", "Replicas", "Because"), rows, numbers=(1,)),
        class_="card",
    )
