"""The page: well-formed, self-contained, small, reproducible, and safe from names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from html.parser import HTMLParser

import pytest

from headroom.simulator.outcome import Move, Outcome, Timeline
from headroom.simulator.report.html_page import TIMELINES, page
from support.fakes_outcome import eventful, outcome, timeline

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Reader(HTMLParser):
    """Holds open tags against closing ones, and collects what a test asks about."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))


def opened(outcomes: Sequence[Outcome]) -> Reader:
    reader = Reader()
    reader.feed(page(outcomes))
    reader.close()
    assert reader.open == []
    return reader


PEERS = ("headroom", "clairvoyant", "hpa", "keda", "knative", "ray-serve", "llm-d", "aiad")


def test_page_of_four_hours_and_eight_autoscalers_is_small_and_well_formed() -> None:
    outcomes = [eventful(autoscaler=name) for name in PEERS]
    assert len(page(outcomes).encode()) < 2_000_000
    reader = opened(outcomes)
    assert sum(tag == "article" for tag, _ in reader.seen) == len(PEERS)
    assert sum(tag == "svg" for tag, _ in reader.seen) == len(PEERS) + 1


def test_page_fetches_nothing() -> None:
    text = page([eventful(0.5)])
    assert not re.search(r"https?://|@import|url\((?!#)|\bfetch\(|\bimport\b", text)
    reader = opened([eventful(0.5)])
    for tag, attributes in reader.seen:
        assert tag not in {"link", "img", "iframe", "object", "embed"}
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")


def test_page_ids_are_unique_and_references_resolve() -> None:
    outcomes = [eventful(0.5, autoscaler=name) for name in PEERS[:3]]
    reader = opened(outcomes)
    ids = [attributes["id"] for _, attributes in reader.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page(outcomes))) <= set(ids)


def test_page_of_same_outcomes_is_the_same_bytes() -> None:
    assert page([eventful(0.5)]) == page([eventful(0.5)])


def test_page_escapes_names_and_messages() -> None:
    evil = "</script><script>alert(1)</script>&\"'"
    moves = [Move(time_s=1.0, before=1, after=2, reason=evil, message=evil)]
    reader = opened(
        [outcome(evil, scenario=evil, service=evil, moves=moves), outcome("headroom", service=evil)]
    )
    assert sum(tag == "script" for tag, _ in reader.seen) == 3  # two readings, the page's
    assert ("h4", evil) in reader.texts
    assert sum(data.count(evil) for tag, data in reader.texts if tag == "td") >= 3


def test_page_values_distinguish_gaps_from_unanswered() -> None:
    tails = [0.05, math.nan, math.inf, 0.0512]
    reader = opened([outcome(timeline_=timeline(4, p95_s=tails))])
    data = json.loads(next(text for tag, text in reader.texts if text.startswith('{"t"')))
    assert data["p95_ms"] == [50, None, -1, 51.2]
    assert data["ready"] == [2, 2, 2, 2]
    assert data["t"] == [10.0, 20.0, 30.0, 40.0]


def test_page_lists_decisions_in_a_table_and_marks_them() -> None:
    moves = [Move(time_s=3661.0, before=2, after=5, reason="Burst", message="m" * 500)]
    reader = opened([outcome(moves=moves)])
    cells = [data for tag, data in reader.texts if tag == "td"]
    assert cells[-4:-1] == ["1:01:01", "2 → 5", "Burst"]
    assert len(cells[-1]) == 240
    assert any(attributes.get("class") == "move up" for _, attributes in reader.seen)


@pytest.mark.parametrize(
    "timeline_",
    [
        timeline(0),
        timeline(1),
        timeline(3, p95_s=[math.nan] * 3),
        timeline(3, arrival_rps=[0.0] * 3),
    ],
    ids=["no sample", "one sample", "no answer", "no load"],
)
def test_page_of_a_run_without_values_has_its_panels_and_no_invalid_coordinate(
    timeline_: Timeline,
) -> None:
    reader = opened([outcome(timeline_=timeline_, within=0, gpu_hours=0.0, p95_s=math.inf)])
    assert sum(attributes.get("class") == "title" for _, attributes in reader.seen) == 4
    assert ("td", "never") in reader.texts
    drawn = [value or "" for _, attributes in reader.seen for value in attributes.values()]
    assert not [value for value in drawn if re.search(r"\b(nan|inf)\b", value) and value != "inf"]


def test_page_with_too_many_timelines_says_how_many_are_missing() -> None:
    reader = opened([outcome(f"peer {index}") for index in range(TIMELINES + 3)])
    assert sum(tag == "article" for tag, _ in reader.seen) == TIMELINES
    assert any("3 timelines not shown" in data for _, data in reader.texts)


def test_page_without_outcomes_is_empty() -> None:
    assert any("0 scenarios" in data for _, data in opened([]).texts)


def test_page_shows_what_waits_at_clients_with_what_waits_at_replicas() -> None:
    waits = timeline(waiting=[1.0, 8.0, 8.0, 8.0], unsent=[0.0, 70.0, 692.0, 0.0])
    text = page([outcome(timeline_=waits, peak_waiting=8, peak_unsent=692)])
    assert "waiting, requests, those at clients included" in text
    assert "8 waiting at most at replicas, 692 at clients" in text
    assert '"waiting":[1,78,700,8]' in text.replace(" ", "")
    assert "at clients" not in page([outcome()])
