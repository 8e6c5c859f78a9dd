"""The page of one service: SLO, last hour, decision, what-if, history, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from headroom.api.service_status.conditions import Condition
from headroom.api.service_status.partner_status import PartnerStatus
from headroom.charts.markup import Markup, joined, tag
from headroom.console.history import Cost, History
from headroom.console.pages import formatting as fmt
from headroom.console.pages import history_figure
from headroom.console.pages.decision import decision_section
from headroom.console.pages.frame import badge, page, simple_table
from headroom.console.pages.history_layers import STATES
from headroom.console.pages.past import moves_section, starts_section
from headroom.console.pages.what_if_form import FormFields
from headroom.console.pages.what_if_form import section as what_if
from headroom.console.read_model import ServiceEntry
from headroom.console.service_state import needing_attention
from headroom.console.summary import ServiceSummary
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import DemandKnown


def rendered(one: ServiceEntry, form: FormFields, *, now_s: float) -> str:
    """Render the page; `form` are the fields of the what-if form."""
    row = one.summary
    name = f"{row.namespace}/{row.name}"
    trail = joined((tag("span", "/", class_="soft"), tag("span", name, class_="here")))
    history = one.history.samples if one.history else None
    last = one.history.last if one.history else None
    return page(
        f"{name} · Headroom",
        tag(
            "div",
            _heading(row, now_s),
            _figures(row, history.cost if history else None),
            _attention(row.conditions),
            id="head",
            data_live=True,
        ),
        tag(
            "div",
            _last_hour(history, last, now_s),
            tag("div", decision_section(row, last), id="decision", data_live=True, class_="stack"),
            class_="columns",
        ),
        what_if(last, form, action=f"/services/{row.namespace}/{row.name}"),
        tag(
            "div",
            moves_section(history, now_s),
            starts_section(last),
            id="past",
            data_live=True,
            class_="pair",
        ),
        tag("div", _conditions(row.conditions, now_s), id="conditions", data_live=True),
        trail=trail,
    )


def _heading(row: ServiceSummary, now_s: float) -> Markup:
    facts = [
        f"p{row.percentile} below {row.target}",
        f"utilization below {fmt.percent(row.ceiling)}",
        f"{row.min_replicas} to {row.max_replicas} replicas",
        f"mode {row.mode}",
    ]
    known = [part for part in facts if "None" not in part]
    decided = "" if row.decided is None else f" · decided {_ago(row.decided, now_s)}"
    return tag(
        "div",
        tag("h1", row.name, " ", badge(row.state)),
        tag("p", " · ".join(known), decided, class_="soft"),
        class_="heading",
    )


def _figures(row: ServiceSummary, cost: Cost | None) -> Markup:
    share = f"of {row.current} requested"
    latency = (row.latency or fmt.UNKNOWN, f"p{row.percentile}, target {row.target}")
    held: list[tuple[str, str | Markup, str]] = [
        *([("Latency", *latency)] if row.target is not None else []),
        ("Arrivals", fmt.arrivals(row.arrivals_rps, row.demand), _rate(row)),
        ("Waiting", fmt.number(row.waiting), "requests"),
        (
            "Utilization",
            fmt.percent(row.utilization),
            f"ceiling {fmt.percent(row.ceiling)}",
        ),
        ("Ready", fmt.number(row.ready), share),
        ("Accelerators", fmt.number(row.accelerators), row.accelerator),
    ]
    for name, promise in (
        ("First token", row.first_token),
        ("Per output token", row.output_token),
    ):
        if promise is not None:
            held.append((name, *fmt.promise(promise)))
    if row.generation:
        held.append(("Generation", row.generation.partition(",")[0], row.generation))
    for name, sentence in row.classes.items():
        held.append((f"Class {name}", sentence.rpartition(", ")[2], sentence))
    if row.partner is not None:
        held.append(_partner(row.namespace, row.partner))
    if cost is not None:
        less = f"accelerator-hours; {fmt.number(cost.peak_hours)} if always at the peak"
        held.append((f"Used in {fmt.span(cost.watched_s)}", fmt.number(cost.hours), less))
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", unit)))
            for name, value, unit in held
        ),
        class_="figures",
    )


def _partner(namespace: str, partner: PartnerStatus) -> tuple[str, Markup, str]:
    """Return the other pool of a pair with its state, and a link to its page."""
    link = tag("a", partner.name, href=f"/services/{namespace}/{partner.name}")
    return f"{partner.role} pool", link, partner.sentence.partition(", ")[2]


def _rate(row: ServiceSummary) -> str:
    """Return the unit of the arrivals, with the known demand behind them."""
    demand = row.demand
    if demand is None or demand.known == DemandKnown.EXACT:
        return "requests/s"
    if demand.known == DemandKnown.INCLUDES_RETRIES:
        return f"requests/s with retries; demand {demand.rate}"
    most = demand.at_most_per_second
    return "requests/s at least" + (f"; up to {fmt.number(most)}" if most is not None else "")


def _attention(conditions: Sequence[Condition]) -> Markup | None:
    """Return the conditions that are False and should not be; those that say the same are one."""
    bad = [one for one in needing_attention(conditions) if one.status != "Unknown"]
    if not bad:
        return None
    names: dict[tuple[str, str], list[str]] = {}
    for one in bad:
        names.setdefault((one.reason, one.message), []).append(one.type)
    items = [
        tag("li", tag("b", f"{', '.join(types)}: {reason}"), f" {message}")
        for (reason, message), types in names.items()
    ]
    return tag("section", tag("h2", "Needs attention"), tag("ul", *items), class_="alert")


def _last_hour(history: History | None, last: Evaluation | None, now_s: float) -> Markup:
    if history is None or last is None:
        text = "This process has not evaluated the service: the leader keeps its history."
        if history is not None:
            text = "With many services, recording starts at the first view: it appears in seconds."
        return tag("section", tag("h2", "Last hour"), tag("p", text, class_="empty"))
    series = history.series()
    figure = history_figure.draw(
        series,
        history.moves,
        now_s=now_s,
        target_s=last.policy.latency_target_s,
        percentile=last.policy.latency_percentile,
    )
    data = tag("script", Markup(history_figure.readings(series)), type="application/json")
    legend = [
        tag("span", tag("i", class_=f"key {state}"), state)
        for state in STATES
        if series[state].size and (series[state] > 0).any()
    ]
    if (series["bound"] > 0).any():
        legend.append(tag("span", "\N{UP ARROWHEAD} demand is at least the arrivals"))
    if (series["bound"] < 0).any():
        legend.append(tag("span", "\N{DOWN ARROWHEAD} arrivals include retries"))
    legend += [
        tag("span", "\N{BLACK UP-POINTING TRIANGLE} more replicas"),
        tag("span", "\N{WHITE DOWN-POINTING TRIANGLE} fewer replicas"),
        tag("span", "\N{MULTIPLICATION SIGN} above target"),
    ]
    return tag(
        "section",
        tag("h2", "Last hour, UTC"),
        tag("p", *legend, class_="legend"),
        tag("div", figure, data, id="history", data_live=True, class_="history"),
        tag("p", "Point at the plot, or focus it and use the arrow keys.", class_="reading"),
        class_="card",
    )


def _conditions(conditions: Sequence[Condition], now_s: float) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", one.type, scope="row"),
            tag("td", one.status.value),
            tag("td", one.reason),
            tag("td", _ago(one.last_transition_time, now_s)),
            tag("td", one.message, class_="text"),
        )
        for one in conditions
    ]
    heads = ("Condition", "Status", "Reason", "Since", "Message")
    table = simple_table(heads, rows, numbers=())
    return tag("section", tag("h2", "Conditions"), table, class_="card")


def _ago(moment: str | None, now_s: float) -> str:
    if not moment:
        return fmt.UNKNOWN
    then = datetime.fromisoformat(moment)
    return fmt.ago(then.astimezone(UTC).timestamp(), now_s)
