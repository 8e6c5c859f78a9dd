"""The what-if section of a service's page: a form, its answer, and common alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headroom.charts.markup import Inner, Markup, tag
from headroom.console.pages import formatting as fmt
from headroom.console.what_if import Answer, answer, neighbours
from headroom.console.what_if_changes import PERCENTILES, parsed
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Policy
from headroom.scaling.values.tokens import Target, TokenTargets

FIELDS = ("target", "percentile", "ceiling", "min", "max", "first_token", "output_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFields:
    """The fields of the form as sent; missing ones are empty."""

    target: str = ""
    percentile: str = ""
    ceiling: str = ""
    min: str = ""
    max: str = ""
    first_token: str = ""
    output_token: str = ""

    def fields(self) -> dict[str, str]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in FIELDS}

    @property
    def is_empty(self) -> bool:
        """Return whether all fields are empty."""
        return not any(text.strip() for text in self.fields().values())


def section(last: Evaluation | None, form: FormFields, *, action: str) -> Markup:
    """Render form and answers."""
    heading = tag("h2", "What if", id="what-if")
    if last is None:
        text = "No evaluation yet."
        return tag("section", heading, tag("p", text, class_="empty"), class_="card")
    problem, own = _own(last, form)
    rows = [
        _row(one, "unchanged" if index == 0 else _difference(one, last), index == 0)
        for index, one in enumerate(neighbours(last))
    ]
    if own is not None:
        rows.insert(1, _row(own, f"your values: {_difference(own, last)}", False, mine=True))
    note = (
        "The decision for the last observation, computed again. Settled: the replicas that the "
        "rules require after holds and rate limits; now: the desired replicas at this tick."
    )
    return tag(
        "section",
        heading,
        _form(last, form, action),
        tag("p", problem, class_="problem", role="alert") if problem else None,
        _table(rows, last),
        tag("p", note, class_="note"),
        class_="card",
    )


def _own(last: Evaluation, form: FormFields) -> tuple[str, Answer | None]:
    if form.is_empty:
        return "", None
    try:
        return "", answer(last, parsed(form.fields()))
    except ValueError as error:
        return str(error), None


def _form(last: Evaluation, form: FormFields, action: str) -> Markup:
    policy = last.policy
    held = {
        "target": ("Target", fmt.seconds(policy.latency_target_s), form.target),
        "ceiling": ("Ceiling", f"{policy.utilization_ceiling:g}", form.ceiling),
        "min": ("Min replicas", str(policy.min_replicas), form.min),
        "max": ("Max replicas", str(policy.max_replicas), form.max),
    }
    for field, label, target in _promises(policy):
        if target is not None:
            held[field] = (label, fmt.seconds(target.seconds), getattr(form, field))
    inputs: list[Inner] = [
        tag("label", name, tag("input", name=field, value=value, placeholder=present, size=8))
        for field, (name, present, value) in held.items()
    ]
    options = [tag("option", "unchanged", value="")]
    options += [
        tag("option", f"p{one}", value=str(one), selected=form.percentile == str(one))
        for one in PERCENTILES
    ]
    inputs.insert(1, tag("label", "Percentile", tag("select", *options, name="percentile")))
    return tag(
        "form",
        *inputs,
        tag("button", "Compute"),
        action=f"{action}#what-if",
        method="get",
        class_="what-if",
        autocomplete="off",
    )


def _table(rows: list[Markup], last: Evaluation) -> Markup:
    percentile = f"Expected p{100 * last.policy.latency_percentile:g}"
    heads = ("If", "Settled", "Now", percentile, "Utilization", "Accelerators", "Because")
    titles = [
        tag("th", title, scope="col", class_="number" if 0 < index < 6 else None)
        for index, title in enumerate(heads)
    ]
    table = tag("table", tag("thead", tag("tr", *titles)), tag("tbody", *rows), class_="slack")
    return tag("div", table, class_="scroll")


def _row(one: Answer, name: str, present: bool, mine: bool = False) -> Markup:
    infeasible = None if one.feasible else tag("span", "infeasible", class_="bad")
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", fmt.number(one.settled), class_="number"),
        tag("td", fmt.number(one.now), class_="number"),
        tag("td", fmt.seconds(one.latency_s), class_="number"),
        tag("td", fmt.percent(one.utilization), class_="number"),
        tag("td", fmt.number(one.accelerators), class_="number"),
        tag("td", infeasible or one.reason, class_="soft"),
        class_="chosen" if present else "mine" if mine else None,
    )


def _promises(policy: Policy) -> Iterator[tuple[str, str, Target | None]]:
    tokens = policy.token_targets or TokenTargets()
    yield "first_token", "First token", tokens.first_token
    yield "output_token", "Output token", tokens.output_token


def _difference(one: Answer, last: Evaluation) -> str:
    """Return the values in which the answer's policy differs."""
    chosen, present = one.policy, last.policy
    parts = [
        (chosen.latency_target_s != present.latency_target_s)
        and f"target {fmt.seconds(chosen.latency_target_s)}",
        (chosen.latency_percentile != present.latency_percentile)
        and f"p{100 * chosen.latency_percentile:g}",
        (chosen.utilization_ceiling != present.utilization_ceiling)
        and f"ceiling {fmt.percent(chosen.utilization_ceiling)}",
        *(
            was is not None
            and now is not None
            and was != now
            and f"{label.lower()} {fmt.seconds(now.seconds)}"
            for (_, label, was), (_, _, now) in zip(
                _promises(present), _promises(chosen), strict=True
            )
        ),
        (chosen.min_replicas != present.min_replicas) and f"at least {chosen.min_replicas}",
        (chosen.max_replicas != present.max_replicas) and f"at most {chosen.max_replicas}",
    ]
    return ", ".join(part for part in parts if part) or "unchanged"
