"""What the pages show: which services, in which order, of what they are made; and what-if."""

from __future__ import annotations

import html
import json
import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console_world import START_S, an_hour, bystander, raw
from headroom.console.cold_starts import starts
from headroom.console.history import COLUMNS, Course
from headroom.console.listing import PER_PAGE, Query, listing
from headroom.console.pages import axes, overview, plots
from headroom.console.pages import formatting as fmt
from headroom.console.pages import service as service_page
from headroom.console.pages.markup import path, tag
from headroom.console.pages.what_if_form import Asked
from headroom.console.read_model import ReadModel
from headroom.console.summary import State, summarize
from headroom.console.what_if import Wish, answer, neighbours, parsed
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import decide

MANY = [bystander(number) for number in range(250)]


@pytest.fixture(scope="module")
def lived() -> ReadModel:
    model, _ = an_hour(seconds=600.0)
    return model


@pytest.fixture(scope="module")
def last(lived: ReadModel) -> Evaluation:
    found = lived.view("vision", "demo")
    assert found is not None
    assert found.history is not None
    assert found.history.last is not None
    return found.history.last


def many() -> ReadModel:
    return ReadModel(lambda: MANY)


def names(query: Query) -> list[str]:
    return [one.summary.name for one in listing(many().entries(), query).rows]


def test_the_worst_come_first_a_hundred_at_a_time() -> None:
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
def test_services_are_searched_chosen_and_sorted(
    query: Query, first: str | None, found: int | None
) -> None:
    seen = listing(many().entries(), query)
    assert found in (None, seen.found)
    if first is not None and seen.rows:
        assert seen.rows[0].summary.name == first


def test_counts_are_of_all_states_whichever_is_shown() -> None:
    every, blocked = (listing(many().entries(), Query(state=s)) for s in (None, State.BLOCKED))
    assert every.states == blocked.states
    assert every.accelerators == blocked.accelerators
    assert set(every.accelerators) == {"nvidia.com/gpu"}


def test_a_page_beyond_the_last_is_the_last() -> None:
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
def test_an_address_is_read_as_far_as_it_is_known(given_: dict[str, str], query: Query) -> None:
    assert Query.parse(given_) == query


def test_an_address_leads_back_to_its_query() -> None:
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


def test_a_service_made_anew_under_its_name_has_no_history(lived: ReadModel) -> None:
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


def test_as_it_is_the_answer_is_the_decision(last: Evaluation) -> None:
    decision, _ = decide(last.policy, last.state, last.observation)
    found = answer(last, Wish())
    assert (found.now, found.reason) == (decision.replicas, decision.reason)
    assert found.now == last.decision.replicas
    assert found.utilization == pytest.approx(
        next(c.utilization for c in decision.counterfactuals if c.replicas == found.settled)
    )


def test_a_lower_ceiling_or_target_never_asks_for_fewer(last: Evaluation) -> None:
    ceilings = [answer(last, Wish(ceiling=one)).settled or 0 for one in (0.9, 0.8, 0.6, 0.4, 0.2)]
    targets = [answer(last, Wish(target_s=one)).settled or 0 for one in (3.0, 1.5, 0.8, 0.5)]
    assert ceilings == sorted(ceilings)
    assert ceilings[-1] > ceilings[0]
    assert targets == sorted(targets)


def test_bounds_bind_and_a_target_below_the_floor_is_not_feasible(last: Evaluation) -> None:
    assert answer(last, Wish(least=12, most=12)).settled == 12
    assert not answer(last, Wish(target_s=0.1)).feasible


def test_neighbours_begin_with_what_stands(last: Evaluation) -> None:
    found = neighbours(last)
    assert found[0].policy == last.policy
    assert [one.policy.latency_target_s for one in found[1:5]] == [0.75, 1.12, 2.25, 3.0]
    assert [one.policy.utilization_ceiling for one in found[5:]] == [0.6, 0.7, 0.9]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"target": "soon"}, "target: a duration must be numbers with units"),
        ({"target": "20m"}, "target: from 1ms to 10m, received 20m"),
        ({"ceiling": "80"}, "ceiling: above 0 and at most 0.95, received '80'"),
        ({"ceiling": "nan"}, "ceiling: above 0"),
        ({"percentile": "50"}, "percentile: 90, 95 or 99"),
        ({"min": "0"}, "min: whole replicas from 1 to 1000"),
        ({"max": "-1"}, "max: whole replicas"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_naming_its_field(
    fields: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parsed(fields)


def test_bounds_that_cross_are_refused(last: Evaluation) -> None:
    with pytest.raises(ValueError, match="minReplicas must be at most maxReplicas, received 9 and"):
        answer(last, Wish(least=9, most=3))


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def shown(model: ReadModel, asked: Asked | None = None, name: str = "demo") -> str:
    found = model.view("vision", name)
    assert found is not None
    return service_page.rendered(found, asked or Asked(), now_s=START_S)


def test_a_service_is_shown_with_its_promise_its_decision_and_what_else(lived: ReadModel) -> None:
    page = text_of(shown(lived))
    for words_ in (
        "p95 below 1.5s",
        "What one more or less would do",
        "What each rule wants",
        "UtilizationCeiling",
        "Cold starts",
        "accelerator-hours",
        "MetricsAvailable",
    ):
        assert words_ in page
    assert "None" not in page
    assert "nan" not in page


def test_what_is_asked_in_the_form_is_answered_or_refused(lived: ReadModel) -> None:
    assert "asked: ceiling 50" in text_of(shown(lived, Asked(ceiling="0.5")))
    wrong = shown(lived, Asked(ceiling="80", target='"><script>'))
    assert "<script>" not in wrong.replace('<script type="application/json">', "")
    assert "target: a duration must be" in text_of(wrong)


def test_a_service_that_nobody_has_evaluated_says_so() -> None:
    one = raw("bare")
    page = text_of(shown(ReadModel(lambda: [one]), name="bare"))
    assert "No decision yet." in page
    assert "history is kept by the one that leads" in page
    assert "None" not in page


def test_every_service_of_the_list_is_a_link_and_states_have_marks() -> None:
    seen = listing(many().entries(), Query(order="name"))
    page = overview.rendered(seen, now_s=START_S)
    for one in seen.rows:
        assert f'href="/services/{one.summary.namespace}/{one.summary.name}"' in page
    assert 'href="#s-abovetarget"' in page
    assert "1\N{EN DASH}100 of 250" in text_of(page)
    assert 'rel="next"' in page
    assert " style=" not in page, "the policy for content forbids it"
    assert "onclick" not in page


def test_an_empty_cluster_says_what_to_do() -> None:
    page = overview.rendered(listing([], Query()), now_s=START_S)
    assert "No InferenceService yet" in page
    page = overview.rendered(listing([], Query(search="x")), now_s=START_S)
    assert "Clear the search" in page


def test_the_phases_of_a_start_add_up(last: Evaluation) -> None:
    for one in starts(last):
        assert one.total_s is not None
        phases = (one.scheduling_s, one.pulling_s, one.fetching_s, one.warming_s)
        assert sum(each or 0.0 for each in phases) == pytest.approx(one.total_s)


def course(**columns: list[float]) -> Course:
    length = max(len(values) for values in columns.values())
    values = np.full((length, len(COLUMNS)), np.nan, dtype=np.float32)
    for name, column in columns.items():
        values[:, COLUMNS.index(name)] = column
    return Course(
        times_s=START_S - 10.0 * np.arange(length, 0, -1, dtype=np.float64), values=values
    )


def drawn(one: Course) -> str:
    return plots.course_figure(one, (), now_s=START_S, target_s=1.0, percentile=0.95)


def test_a_gap_lifts_the_pen() -> None:
    one = course(arrivals_rps=[1.0, 2.0, math.nan, 3.0, 4.0])
    (line,) = re.findall(r'class="line load" d="([^"]*)"', drawn(one))
    assert line.count("M") == 2


def test_samples_above_the_target_have_a_mark_of_their_own() -> None:
    one = course(latency_s=[0.5, 1.5, math.inf], target_s=[1.0, 1.0, 1.0])
    (late,) = re.findall(r'class="late" d="([^"]*)"', drawn(one))
    assert late.count("m-2 -2") == 2


@pytest.mark.parametrize("empty", [course(arrivals_rps=[]), course(arrivals_rps=[math.nan])])
def test_nothing_seen_is_drawn_as_nothing(empty: Course) -> None:
    assert "nan" not in drawn(empty)
    assert plots.sparkline(empty, now_s=START_S) is None


def test_readings_are_json_without_what_json_has_not(lived: ReadModel) -> None:
    said = json.loads(plots.readings(course(latency_s=[math.nan, math.inf, 0.25])))
    assert said["latency_s"] == [None, -1.0, 0.25]


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_becomes_markup(within: str, value: str) -> None:
    made = tag("p", within, title=value)
    assert re.fullmatch(r'<p title="[^"<>]*">[^<>]*</p>', made, re.DOTALL)
    assert html.unescape(made) == f'<p title="{value}">{within}</p>'


@given(st.floats(0.0, 1e7), st.booleans())
def test_an_axis_names_few_round_numbers_within_itself(high: float, whole: bool) -> None:
    axis = axes.linear(high, 100.0, 0.0, whole=whole)
    assert 2 <= len(axis.ticks) <= 6
    assert all(0.0 <= axis(value) <= 100.0 for value, _ in axis.ticks)
    assert axis.high >= high


def test_a_count_axis_has_a_zero_and_no_numbers_on_top_of_each_other() -> None:
    axis = axes.counts(600.0, 60.0, 0.0)
    places = [axis(value) for value, _ in axis.ticks]
    assert places[0] == 60.0
    assert all(before - after > 10 for before, after in pairwise(places))


def test_a_path_of_steps_keeps_each_value_until_the_next() -> None:
    assert path([(0, 1), (2, 1), (4, 3)], steps=True) == "M0 1H2H4V3"
    assert path([(0, 1), (1, math.nan), (2, 3), (3, 4)]) == "M0 1M2 3L3 4"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, fmt.UNKNOWN),
        (0.256, "0.256"),
        (12.34, "12.3"),
        (1234.0, f"1{fmt.NARROW}234"),
    ],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert fmt.number(value) == text


@pytest.mark.parametrize(
    ("gone_s", "text"), [(-3, "0 s ago"), (59, "59 s ago"), (120, "2 min ago"), (7300, "2 h ago")]
)
def test_ages_are_said_in_their_largest_unit(gone_s: float, text: str) -> None:
    assert fmt.ago(START_S - gone_s, START_S) == text
