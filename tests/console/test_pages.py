"""Pages of the console: the services and their order, the contents, and what-if."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from headroom.console.cold_starts import starts
from headroom.console.listing import PER_PAGE, Query, listing
from headroom.console.pages import overview
from headroom.console.pages import service as service_page
from headroom.console.pages.what_if_form import FormFields
from headroom.console.read_model import ReadModel
from headroom.console.service_state import State
from headroom.console.summary import summarize, summary_json
from headroom.console.what_if import answer, neighbours
from headroom.console.what_if_changes import Changes, parsed
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Demand, DemandKnown, decide
from headroom.scaling.post_rules import PostRuleInputs
from support.console_world import START_S, an_hour, bystander, raw

MANY = [bystander(number) for number in range(250)]


def many() -> ReadModel:
    return ReadModel(lambda: MANY)


def names(query: Query) -> list[str]:
    return [one.summary.name for one in listing(many().entries(), query).rows]


def test_listing_shows_worst_first_a_hundred_per_page() -> None:
    seen = listing(many().entries(), Query())
    order = [list(State).index(one.summary.state) for one in seen.rows]
    assert order == sorted(order)
    assert (len(seen.rows), seen.found, seen.pages) == (PER_PAGE, 250, 3)
    assert sum(seen.states.values()) == 250


@pytest.mark.parametrize(
    ("query", "first", "found"),
    [
        (Query(order="name"), "bert-base-103", 250),
        (Query(search="VISION/yolo-5"), "yolo-5", None),
        (Query(order="arrivals"), "yolo-113", 250),
        (Query(state=State.BLOCKED), None, 12),
        (Query(search="nobody"), None, 0),
    ],
)
def test_listing_searches_filters_and_sorts(
    query: Query, first: str | None, found: int | None
) -> None:
    seen = listing(many().entries(), query)
    assert found in (None, seen.found)
    if first is not None and seen.rows:
        assert seen.rows[0].summary.name == first


def test_listing_counts_all_states() -> None:
    every, blocked = (listing(many().entries(), Query(state=s)) for s in (None, State.BLOCKED))
    assert every.states == blocked.states
    assert every.accelerators == blocked.accelerators
    assert set(every.accelerators) == {"nvidia.com/gpu"}


def test_page_beyond_the_last_is_the_last() -> None:
    seen = listing(many().entries(), Query(number=99))
    assert (seen.query.number, len(seen.rows)) == (3, 50)


@pytest.mark.parametrize(
    ("given_", "query"),
    [
        ({}, Query()),
        ({"q": " a ", "page": "2", "sort": "name"}, Query(search="a", number=2, order="name")),
        (
            {"state": "abovetarget", "namespace": "v"},
            Query(state=State.ABOVE_TARGET, namespace="v"),
        ),
        ({"state": "lost", "sort": "size", "page": "-1"}, Query()),
        ({"page": "9" * 40}, Query()),
    ],
)
def test_query_of_unknown_values_ignores_them(given_: dict[str, str], query: Query) -> None:
    assert Query.parse(given_) == query


def test_query_address_round_trips() -> None:
    query = Query(search="a b&c", state=State.HEALTHY, namespace="v", order="name", number=3)
    fields = dict(pair.split("=") for pair in query.address().removeprefix("/?").split("&"))
    assert fields == {
        "q": "a+b%26c",
        "state": "healthy",
        "namespace": "v",
        "sort": "name",
        "page": "3",
    }


def test_summary_of_changed_object_shows_new_values() -> None:
    stored = [bystander(0)]
    model = ReadModel(lambda: stored)
    before = model.entries()[0].summary
    changed = bystander(16)
    changed["metadata"] |= {"uid": stored[0]["metadata"]["uid"], "resourceVersion": "900"}
    stored[0] = changed
    assert before == summarize(bystander(0))
    assert model.entries()[0].summary == summarize(changed)


def test_recreated_service_has_no_history(lived: ReadModel) -> None:
    anew = raw("demo")
    anew["metadata"]["uid"] = "another"
    model = ReadModel(lambda: [anew])
    model._histories = lived._histories
    found = model.view("vision", "demo")
    assert found is not None
    assert found.history is None
    lived_there = lived.view("vision", "demo")
    assert lived_there is not None
    assert lived_there.history is not None


def test_what_if_without_changes_is_the_decision(last: Evaluation) -> None:
    decision, _ = decide(last.policy, last.state, last.observation)
    found = answer(last, Changes())
    assert (found.now, found.reason) == (decision.replicas, decision.reason)
    assert found.now == last.decision.replicas
    assert found.utilization == pytest.approx(
        next(c.utilization for c in decision.counterfactuals if c.replicas == found.settled)
    )


def test_what_if_with_lower_ceiling_or_target_never_needs_fewer(last: Evaluation) -> None:
    ceilings = [
        answer(last, Changes(ceiling=one)).settled or 0 for one in (0.9, 0.8, 0.6, 0.4, 0.2)
    ]
    targets = [answer(last, Changes(target_s=one)).settled or 0 for one in (3.0, 1.5, 0.8, 0.5)]
    assert ceilings == sorted(ceilings)
    assert ceilings[-1] > ceilings[0]
    assert targets == sorted(targets)


def test_what_if_while_a_token_slo_is_missed_holds_the_removal(last: Evaluation) -> None:
    quiet = replace(last, post_inputs=PostRuleInputs(token_slo_objection="p95 is 2s"))
    for changes in (Changes(), Changes(target_s=3.0), Changes(ceiling=0.9)):
        assert answer(quiet, changes).now >= last.observation.current


def test_what_if_respects_bounds_and_reports_infeasible_target(last: Evaluation) -> None:
    assert answer(last, Changes(min_replicas=12, max_replicas=12)).settled == 12
    assert not answer(last, Changes(target_s=0.1)).feasible


def test_alternatives_start_with_unchanged_values(last: Evaluation) -> None:
    found = neighbours(last)
    assert found[0].policy == last.policy
    assert [one.policy.latency_target_s for one in found[1:5]] == [0.75, 1.12, 2.25, 3.0]
    assert [one.policy.utilization_ceiling for one in found[5:]] == [0.6, 0.7, 0.9]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"target": "soon"}, "target: a duration must be numbers with units"),
        ({"target": "20m"}, "target must be between 1ms and 10m; got 20m"),
        ({"ceiling": "80"}, "ceiling must be a share from 0.01 to 0.95; got '80'"),
        ({"ceiling": "nan"}, "ceiling must be a share from 0.01"),
        ({"percentile": "50"}, "percentile must be 90, 95 or 99"),
        ({"min": "0"}, "min must be a whole number from 1 to 1000"),
        ({"max": "-1"}, "max must be a whole number"),
    ],
)
def test_invalid_what_if_field_is_named(fields: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parsed(fields)


def test_what_if_with_crossing_bounds_raises(last: Evaluation) -> None:
    with pytest.raises(ValueError, match="minReplicas must be at most maxReplicas; got 9 and"):
        answer(last, Changes(min_replicas=9, max_replicas=3))


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def shown(model: ReadModel, form: FormFields | None = None, name: str = "demo") -> str:
    found = model.view("vision", name)
    assert found is not None
    return service_page.rendered(found, form or FormFields(), now_s=START_S)


def test_service_page_shows_target_decision_and_alternatives(lived: ReadModel) -> None:
    page = text_of(shown(lived))
    for words_ in (
        "p95 below 1.5s",
        "One replica more or fewer",
        "What each rule requires",
        "UtilizationCeiling",
        "Cold starts",
        "accelerator-hours",
        "MetricsAvailable",
    ):
        assert words_ in page
    assert "None" not in page
    assert "nan" not in page


def test_what_if_form_shows_answer_or_error(lived: ReadModel) -> None:
    assert "your values: ceiling 50" in text_of(shown(lived, FormFields(ceiling="0.5")))
    wrong = shown(lived, FormFields(ceiling="80", target='"><script>'))
    assert "<script>" not in wrong.replace('<script type="application/json">', "")
    assert "target: a duration must be" in text_of(wrong)


def test_page_of_unevaluated_service_says_so() -> None:
    one = raw("bare")
    page = text_of(shown(ReadModel(lambda: [one]), name="bare"))
    assert "No decision yet." in page
    assert "the leader keeps its history" in page
    assert "None" not in page


def test_overview_links_services_and_marks_states() -> None:
    seen = listing(many().entries(), Query(order="name"))
    page = overview.rendered(seen, now_s=START_S)
    for one in seen.rows:
        assert f'href="/services/{one.summary.namespace}/{one.summary.name}"' in page
    assert 'href="#s-abovetarget"' in page
    assert "1\N{EN DASH}100 of 250" in text_of(page)
    assert 'rel="next"' in page
    assert " style=" not in page, "the policy for content forbids it"
    assert "onclick" not in page


def test_overview_marks_rows_that_need_attention_and_names_only_known_numbers() -> None:
    """A narrow screen shows why only for these rows, and no numbers without a name."""
    bare = overview.rendered(listing(ReadModel(lambda: [raw("bare")]).entries(), Query()), now_s=0)
    assert 'data-name="latency"' not in bare
    assert 'class="attention"' not in bare
    page = overview.rendered(listing(many().entries(), Query(state=State.BLOCKED)), now_s=START_S)
    assert page.count('class="attention"') == page.count('class="open"')


def test_attention_lists_conditions_that_say_the_same_once() -> None:
    one = raw("bare")
    said = {"status": "False", "reason": "AutoscalerConflict", "message": "HPA x scales it"}
    both = [said | {"type": kind} for kind in ("ScalingActive", "AbleToScale")]
    page = text_of(shown(ReadModel(lambda: [one | {"status": {"conditions": both}}]), name="bare"))
    assert " ".join(page.split()).count("AutoscalerConflict HPA x scales it") == 1
    assert "ScalingActive, AbleToScale: AutoscalerConflict" in page


def test_overview_of_empty_cluster_says_what_to_do() -> None:
    page = overview.rendered(listing([], Query()), now_s=START_S)
    assert "There is no InferenceService" in page
    page = overview.rendered(listing([], Query(search="x")), now_s=START_S)
    assert "Clear the search" in page


def test_phases_of_start_add_up(last: Evaluation) -> None:
    for one in starts(last):
        assert one.total_s is not None
        phases = (one.scheduling_s, one.pulling_s, one.fetching_s, one.warming_s)
        assert sum(each or 0.0 for each in phases) == pytest.approx(one.total_s)


DEMANDS = [
    (
        Demand(known=DemandKnown.AT_LEAST, rate_rps=160.0, at_most_rps=533.3, detail="64 wait"),
        ("\N{GREATER-THAN OR EQUAL TO}", "requests/s at least; up to 533"),
        "demand is at least 160/s (64 wait)",
    ),
    (
        Demand(known=DemandKnown.INCLUDES_RETRIES, rate_rps=80.0, detail="374/s counted"),
        ("\N{LESS-THAN OR EQUAL TO}", "requests/s with retries; demand &lt;=80/s"),
        "demand is at most 80/s (374/s counted)",
    ),
    (Demand(), (), ""),
]


@pytest.mark.parametrize(("demand", "figures", "sentence"), DEMANDS, ids=lambda one: str(one)[:20])
def test_pages_show_what_arrivals_do_not_show_of_the_demand(
    demand: Demand, figures: tuple[str, ...], sentence: str
) -> None:
    model, hour = an_hour(seconds=60.0)
    hour.decisions[-1] = replace(hour.decisions[-1], demand=demand)
    found = model.view("vision", "demo")
    assert found is not None
    page = service_page.rendered(found, FormFields(), now_s=START_S)
    table = overview.rendered(listing(model.entries(), Query()), now_s=START_S)
    for text in (*figures, sentence):
        assert text in page
    assert all(text in table for text in figures[:1])
    if not sentence:
        assert "demand is" not in page
        assert "\N{GREATER-THAN OR EQUAL TO}" not in page + table


def test_page_shows_the_margin_and_its_cause() -> None:
    model, hour = an_hour(seconds=60.0)
    slo = {"errorBudgetRemaining": 1.0, "lateShare": 0.031, "margin": 1.4}
    hour.raw["status"]["slo"] = slo
    found = model.view("vision", "demo")
    assert found is not None
    page = service_page.rendered(found, FormFields(), now_s=START_S)
    assert html.escape("margin 1.4x: 3.1% of the last hour's requests were late") in page


def test_page_of_a_pool_links_to_its_partner_and_says_why_replicas_are_kept() -> None:
    model, hour = an_hour(seconds=60.0)
    hour.raw["status"]["partner"] = {
        "name": "chat-prefill",
        "role": "Prefill",
        "replicas": 9,
        "readyReplicas": 4,
        "heldFor": "the prefill pool chat-prefill needs 9 replicas and has 4 ready",
    }
    found = model.view("vision", "demo")
    assert found is not None
    page = service_page.rendered(found, FormFields(), now_s=START_S)
    assert '<a href="/services/vision/chat-prefill">chat-prefill</a>' in page
    assert "4 of its 9 replicas are ready, no replica is removed here, because" in page
    assert summary_json(found.summary)["partner"]["readyReplicas"] == 4


def test_page_of_a_service_without_a_latency_target_shows_no_latency() -> None:
    model, hour = an_hour(seconds=60.0)
    hour.raw["spec"]["slo"] = {"timePerOutputToken": {"target": "50ms"}}
    found = model.view("vision", "demo")
    assert found is not None
    page = service_page.rendered(found, FormFields(), now_s=START_S)
    assert "None" not in page
    assert "Per output token" in page


def test_overview_shows_targets_on_tokens_and_what_was_measured() -> None:
    one = raw("chat")
    one["spec"]["slo"] = {
        "timeToFirstToken": {"percentile": 90, "target": "2s"},
        "timePerOutputToken": {"target": "50ms"},
    }
    one["status"]["signals"] = {
        "timeToFirstToken": "1.2s",
        "timePerOutputToken": "41ms",
        "freshness": "Fresh",
    }
    page = overview.rendered(listing(ReadModel(lambda: [one]).entries(), Query()), now_s=START_S)
    shown_lines = "".join(
        f"<div>{text}</div>" for text in ("TTFT p90 &lt; 2s", "TPOT p95 &lt; 50ms")
    )
    assert shown_lines in page
    assert "<div>1.2s</div><div>41ms</div>" in page
