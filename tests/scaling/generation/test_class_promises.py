"""Promises per class: who is judged by which, and which class a service is sized by."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from headroom.scaling import Decision, Policy, Reason, State, decide
from headroom.scaling.generation.promises.class_judgement import (
    ClassJudgement,
    ClassMeasurement,
    ClassState,
)
from headroom.scaling.generation.promises.classes import SERVICE, ClassCounts, ClassPromise, grouped
from headroom.scaling.generation.promises.token_promises import Measured, measured_of
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import Binding, EngineLimits, Target, TokenTargets
from support.generating_plant import GeneratingPlant, fixed_lengths
from support.generating_plants import QWEN_32B

FIRST = Binding.TIME_TO_FIRST_TOKEN
BOUNDS_S = (0.5, 1.0, 2.0, math.inf)
OWN = TokenTargets(
    first_token=Target(percentile=0.95, seconds=2.0),
    output_token=Target(percentile=0.95, seconds=0.06),
)


def promise(name: str, first_s: float | None) -> ClassPromise:
    """A class with this promise on the first token; None: best effort."""
    if first_s is None:
        return ClassPromise(name=name, targets=TokenTargets())
    first = Target(percentile=0.95, seconds=first_s)
    return ClassPromise(name=name, targets=replace(OWN, first_token=first))


def first_tokens(*cumulative: float) -> LatencyCounts:
    return LatencyCounts(bounds_s=BOUNDS_S, counts=cumulative)


def test_requests_of_classes_without_promises_of_their_own_count_for_the_service() -> None:
    counted = {
        "": ClassCounts(missed=1.0, first_token=first_tokens(1, 2, 3, 4)),
        "plain": ClassCounts(missed=2.0, first_token=first_tokens(10, 20, 30, 40)),
        "chat": ClassCounts(first_token=first_tokens(5, 5, 5, 5)),
    }
    found = grouped(counted, (promise(SERVICE, 2.0), promise("chat", 0.5), promise("batch", None)))
    assert found == {
        SERVICE: ClassCounts(missed=3.0, first_token=first_tokens(11, 22, 33, 44)),
        "chat": counted["chat"],
        "batch": ClassCounts(),
    }


def judged(name: str, first_s: float, *cumulative: float, missed: float = 0.0) -> ClassMeasurement:
    one = promise(name, first_s)
    target = one.by_binding[FIRST]
    bounds, counts = BOUNDS_S, first_tokens(*cumulative).counts
    measured: dict[Binding, Measured] = {
        FIRST: measured_of(target, bounds, np.array(counts), missed)
    }
    return ClassMeasurement(promise=one, window=measured, latest=measured)


def test_each_request_is_judged_by_the_promise_of_its_own_class() -> None:
    """80 of the service within 2 s of 2 s; 20 of a class, of which 10 within its 0.5 s."""
    found = ClassJudgement(
        classes=(judged(SERVICE, 2.0, 0, 40, 80, 80), judged("chat", 0.5, 10, 20, 20, 20))
    )
    assert found.attainment == pytest.approx(0.9)
    assert values(found.outcomes(0.05)) == pytest.approx((100.0, 10.0))
    # the 95th percentile of the class is 0.95 s, of the service 1.9 s
    assert found.worst_ratio() == pytest.approx(0.95 / 0.5)
    assert found.worst_ratio({("chat", FIRST)}) == pytest.approx(0.95)
    assert found.outcomes(0.05, {("chat", FIRST)}).late == 0.0


def values(found: Outcomes) -> tuple[float, float]:
    return found.ended, found.late


def test_requests_that_were_refused_are_late_in_their_class() -> None:
    found = ClassJudgement(classes=(judged("chat", 0.5, 15, 15, 15, 15, missed=5.0),))
    assert found.attainment == pytest.approx(0.75)
    assert values(found.outcomes(0.05)) == pytest.approx((20.0, 5.0))
    assert ClassJudgement(classes=()).attainment is None


LIMITS = EngineLimits(kv_tokens=2_000_000, sequences=256, iteration_tokens=8192)


def decided(*promises: ClassPromise, judgement: ClassJudgement | None = None) -> Decision:
    """The decision on two busy replicas after ten minutes, whose promises are these."""
    plant = GeneratingPlant(
        cost=QWEN_32B, limits=LIMITS, lengths=fixed_lengths(3000, 200), rate_rps=lambda t: 5.0
    )
    plant.scale(2, at_once=True)
    policy = Policy(
        latency_target_s=60.0, token_targets=OWN, routing=Routing.LEAST_IN_FLIGHT, max_replicas=40
    )
    state, classes = State.initial(), ClassState(promises=promises, judgement=judgement)
    while plant.now_s < 600.0:
        plant.run(2.0)
        decision, state = decide(policy, replace(state, classes=classes), plant.observe())
    kept.append(state)
    return decision


kept: list[State] = []


def test_class_with_the_strictest_promise_sizes_the_service_and_is_named() -> None:
    """0.25 s to the first token of one class, where an idle replica takes 0.18 s."""
    alone = decided()
    both = decided(promise(SERVICE, 2.0), promise("chat", 0.25), promise("batch", None))
    assert both.replicas > alone.replicas
    (model,) = [one for one in both.recommendations if one.rule is Reason.LATENCY_MODEL]
    assert "the time to first token of class chat binds: p95 within 0.25s" in model.detail
    assert kept[-1].classes.binding == "chat"
    assert both.generation is not None
    assert both.generation.binding is FIRST
    assert both.generation.first_token is not None
    assert both.generation.first_token.target == OWN.first_token, "the service's own is shown"


def test_class_with_a_looser_promise_or_none_changes_no_replica() -> None:
    alone = decided()
    both = decided(promise(SERVICE, 2.0), promise("slow", 20.0), promise("batch", None))
    assert both.replicas == alone.replicas
    assert kept[-1].classes.binding == SERVICE


def test_promise_of_a_class_that_no_replica_keeps_is_named_and_not_chased() -> None:
    alone = decided()
    hopeless = decided(promise(SERVICE, 2.0), promise("chat", 0.05))
    assert kept[-1].classes.hopeless == {("chat", FIRST)}
    assert not hopeless.feasible
    assert hopeless.replicas == alone.replicas


def test_decision_judges_by_classes_where_they_are_measured() -> None:
    """All of the plant's first tokens are in time; those that a class counted are late."""
    late = ClassJudgement(
        classes=(judged(SERVICE, 2.0, 8, 8, 8, 8), judged("chat", 0.5, 0, 0, 4, 4))
    )
    found = decided(promise(SERVICE, 2.0), promise("chat", 0.5), judgement=late)
    assert found.signals.attainment.value == pytest.approx(8 / 12)
    assert found.late_share == pytest.approx(4 / 12, rel=0.1)


def test_requests_that_gateways_rejected_are_late_whatever_their_class() -> None:
    one = judged("chat", 0.5, 15, 15, 15, 15)
    found = ClassJudgement(classes=(one,), rejected=(5.0, 2.0))
    assert found.attainment == pytest.approx(0.75)
    assert values(found.outcomes(0.05)) == pytest.approx((17.0, 2.0))
