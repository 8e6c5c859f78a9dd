"""What the console keeps of evaluations: all of few services, of many those that are looked at."""

from __future__ import annotations

from dataclasses import replace

from console_world import an_hour
from headroom.console.read_model import ALL_WHOLE, LOOKED_AT, ReadModel, Subject
from headroom.controller.report.evaluation import Evaluation


def evaluation() -> Evaluation:
    model, _ = an_hour(seconds=60.0)
    subject = model.subject("vision", "demo")
    assert subject is not None
    assert subject.seen is not None
    assert subject.seen.last is not None
    return subject.seen.last


def of(base: Evaluation, number: int, uid: str = "") -> Evaluation:
    name = f"s{number}"
    return replace(base, service=replace(base.service, name=name, uid=uid or f"uid-{number}"))


def crowd(base: Evaluation, services: int) -> ReadModel:
    stored = [
        {"metadata": {"namespace": "vision", "name": f"s{number}", "uid": f"uid-{number}"}}
        for number in range(services)
    ]
    model = ReadModel(lambda: stored)
    for number in range(services):
        model.evaluated(of(base, number))
    return model


def look(model: ReadModel, number: int) -> Subject:
    found = model.subject("vision", f"s{number}")
    assert found is not None
    return found


def kept(model: ReadModel, number: int) -> Evaluation | None:
    """Give what is kept, without a look at the page."""
    rows = {one.standing.name: one for one in model.subjects()}
    seen = rows[f"s{number}"].seen
    assert seen is not None
    return seen.last


def test_of_few_services_all_is_kept() -> None:
    base = evaluation()
    model = crowd(base, ALL_WHOLE)
    assert all(kept(model, number) is not None for number in (0, 1, ALL_WHOLE - 1))


def test_of_many_services_the_next_evaluations_of_one_that_is_looked_at_are_kept() -> None:
    base = evaluation()
    model = crowd(base, ALL_WHOLE + 1)
    last = ALL_WHOLE
    assert kept(model, last) is None
    first = look(model, last)
    assert first.seen is not None
    assert first.seen.last is None
    assert first.seen.history.course().times_s.size == 1
    for _ in range(LOOKED_AT):
        model.evaluated(of(base, last))
        assert kept(model, last) is not None
    model.evaluated(of(base, last))
    assert kept(model, last) is None


def test_a_service_of_another_uid_begins_anew_also_where_nothing_was_kept() -> None:
    base = evaluation()
    model = crowd(base, ALL_WHOLE + 1)
    look(model, ALL_WHOLE)
    model.evaluated(of(base, ALL_WHOLE, uid="another"))
    seen = look(model, ALL_WHOLE).seen
    assert seen is None  # the object that is stored is still the former one
