"""`status.classes`: the shown values of each class; none is guessed."""

from __future__ import annotations

from headroom.api.service_status.class_status import class_statuses
from headroom.api.service_status.generation_status import generation_status
from headroom.scaling.generation.promises.class_judgement import (
    ClassJudgement,
    ClassMeasurement,
    ClassState,
)
from headroom.scaling.generation.promises.classes import SERVICE, ClassPromise
from headroom.scaling.generation.promises.token_promises import Measured
from headroom.scaling.values.token_decision import GenerationDecision, Identification
from headroom.scaling.values.tokens import Binding, Target, TokenTargets

FIRST = Binding.TIME_TO_FIRST_TOKEN
TARGET = Target(percentile=0.95, seconds=0.5)
CHAT = ClassPromise(name="chat", targets=TokenTargets(first_token=TARGET))
PROMISES = (
    ClassPromise(name=SERVICE, targets=TokenTargets(first_token=TARGET)),
    CHAT,
    ClassPromise(name="batch", targets=TokenTargets()),
)


def test_status_shows_what_each_class_was_promised_and_attained() -> None:
    measured = {FIRST: Measured(target=TARGET, value_s=0.62, late_share=0.08, requests=120.0)}
    state = ClassState(
        promises=PROMISES,
        judgement=ClassJudgement(classes=(ClassMeasurement(promise=CHAT, window=measured),)),
        floors_s={("chat", FIRST): 0.18},
    )
    chat, batch = class_statuses(state)
    assert chat.manifest() == {
        "name": "chat",
        "bestEffort": False,
        "attainment": 0.92,
        "requestsPerSecond": 2.0,
        "promises": [
            {
                "name": "TimeToFirstToken",
                "target": "500ms",
                "measured": "620ms",
                "floor": "180ms",
                "lateShare": 0.08,
            }
        ],
    }
    assert chat.sentence == "TimeToFirstToken 620ms (target 500ms), 92.0% in time"
    assert batch.sentence == "best effort"


def test_status_of_a_server_that_does_not_count_per_class_says_so() -> None:
    chat, _ = class_statuses(ClassState(promises=PROMISES))
    assert (chat.unknown, chat.attainment, chat.requests_per_second) == (
        "NotCountedByClass",
        None,
        None,
    )
    assert chat.promises[0].measured is None
    assert "not measured: NotCountedByClass" in chat.sentence
    assert class_statuses(ClassState()) == ()


def test_status_names_the_class_whose_promise_binds_and_no_class_where_memory_does() -> None:
    for binding, shown in ((FIRST, "chat"), (Binding.MEMORY, None)):
        decision = GenerationDecision(
            identification=Identification(known=True), binding=binding, capacity_rps=1.2
        )
        found = generation_status(decision, None, "chat")
        assert found is not None
        assert found.binding_class == shown
        whose = f" of class {shown}" if shown else ""
        assert found.sentence == f"{binding}{whose} bounds a replica at 1.2/s"
