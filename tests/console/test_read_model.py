"""Evaluations that the console keeps: all of few services; of many, those with a viewed page."""

from __future__ import annotations

from dataclasses import replace

from headroom.console.read_model import ALL_KEPT_UP_TO, KEPT_AFTER_VIEW, ReadModel, ServiceEntry
from headroom.console.what_if import answer
from headroom.console.what_if_changes import Changes
from headroom.controller.report.evaluation import Evaluation
from support.console_world import an_hour


def evaluation() -> Evaluation:
    model, _ = an_hour(seconds=60.0)
    subject = model.view("vision", "demo")
    assert subject is not None
    assert subject.history is not None
    assert subject.history.last is not None
    return subject.history.last


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
        model.on_decision(of(base, number))
    return model


def look(model: ReadModel, number: int) -> ServiceEntry:
    found = model.view("vision", f"s{number}")
    assert found is not None
    return found


def kept(model: ReadModel, number: int) -> Evaluation | None:
    """Give what is kept, without a look at the page."""
    rows = {one.summary.name: one for one in model.entries()}
    seen = rows[f"s{number}"].history
    assert seen is not None
    return seen.last


def test_few_services_keep_all_evaluations() -> None:
    base = evaluation()
    model = crowd(base, ALL_KEPT_UP_TO)
    assert all(kept(model, number) is not None for number in (0, 1, ALL_KEPT_UP_TO - 1))


def test_many_services_keep_evaluations_after_a_view() -> None:
    base = evaluation()
    model = crowd(base, ALL_KEPT_UP_TO + 1)
    last = ALL_KEPT_UP_TO
    assert kept(model, last) is None
    first = look(model, last)
    assert first.history is not None
    assert first.history.last is None
    assert first.history.samples.series().times_s.size == 1
    for _ in range(KEPT_AFTER_VIEW):
        model.on_decision(of(base, last))
        assert kept(model, last) is not None
    model.on_decision(of(base, last))
    assert kept(model, last) is None


def test_service_with_new_uid_starts_new_history() -> None:
    base = evaluation()
    model = crowd(base, ALL_KEPT_UP_TO + 1)
    look(model, ALL_KEPT_UP_TO)
    model.on_decision(of(base, ALL_KEPT_UP_TO, uid="another"))
    seen = look(model, ALL_KEPT_UP_TO).history
    assert seen is None  # the object that is stored is still the former one


def test_target_ref_counts_the_accelerators_of_its_pod_template() -> None:
    base = evaluation()
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "s0"}
    stored = {
        "metadata": {"namespace": "vision", "name": "s0", "uid": "uid-0", "resourceVersion": "1"},
        "spec": {"targetRef": target, "accelerator": {"count": 1}},
        "status": {"replicas": 3},
    }
    model = ReadModel(lambda: [stored])
    assert model.entries()[0].summary.accelerators is None
    for per_replica, held in ((0, 0), (2, 6)):
        model.on_decision(replace(of(base, 0), accelerators_per_replica=per_replica))
        assert model.entries()[0].summary.accelerators == held
    decided = answer(replace(base, accelerators_per_replica=2), Changes())
    assert decided.settled is not None
    assert decided.accelerators == 2 * decided.settled
    assert answer(replace(base, accelerators_per_replica=None), Changes()).accelerators is None
