"""Each component can be left out, and the decision stays safe."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling import Decision, Freshness, Reason, decide
from headroom.scaling.values.tuning import Component, Tuning
from support.fakes_scaling import Service, policy


def leaving_out(component: Component) -> Tuning:
    return Tuning(without=frozenset({component}))


@st.composite
def services(draw: st.DrawFn, component: Component) -> Service:
    """A service that some loads, with scrapes or without, have passed over."""
    low = draw(st.integers(1, 6))
    service = Service(
        rate_rps=draw(st.floats(0.0, 100.0)),
        replicas=draw(st.integers(1, 12)),
        gpus=draw(st.integers(1, 20)),
        load_s=draw(st.sampled_from([0.0, 5.0, 60.0])),
        policy=policy(
            latency_target_s=draw(st.sampled_from([0.05, 0.5, 1.5])),
            min_replicas=low,
            max_replicas=draw(st.integers(low, 20)),
            scale_down_stabilization_s=draw(st.sampled_from([0.0, 6.0, 60.0])),
            tuning=leaving_out(component),
        ),
    )
    for _ in range(draw(st.integers(0, 3))):
        service.rate_rps = draw(st.floats(0.0, 150.0))
        service.scrape = draw(st.booleans())
        service.run(draw(st.sampled_from([2, 10, 40])))
    service.scrape = True
    return service


@pytest.mark.parametrize("component", list(Component))
@given(data=st.data(), silent_s=st.floats(0.0, 300.0))
@settings(max_examples=30)
def test_decision_without_a_component_keeps_bounds_and_holds(
    component: Component, data: st.DataObject, silent_s: float
) -> None:
    service = data.draw(services(component))
    decision = service.tick()
    low, high = service.policy.min_replicas, service.policy.max_replicas
    assert all(low <= past.replicas <= high for past in service.decisions)
    late = replace(service.observe(), samples=(), now_s=service.now_s + 10.1 + silent_s)
    decision, _ = decide(service.policy, service.state, late)
    if decision.counts.ready:
        assert decision.signals.freshness is not Freshness.FRESH
    assert decision.replicas >= min(late.current, high)


@pytest.mark.parametrize("component", list(Component))
def test_decision_without_a_component_keeps_replicas_once_metrics_are_missing(
    component: Component,
) -> None:
    service = Service(rate_rps=40.0, replicas=6, policy=policy(tuning=leaving_out(component)))
    service.run(90)
    held = service.replicas
    service.rate_rps = 3.0
    service.run(50)  # not the whole hold of 60 s yet
    assert service.replicas == held
    service.scrape = False
    service.run(200)  # stale for two minutes, then absent
    assert service.replicas == held
    seen = {decision.signals.freshness for decision in service.decisions[-100:]}
    assert seen == set(Freshness)


def rules(decision: Decision) -> set[Reason]:
    return {rule.rule for rule in decision.recommendations}


@pytest.mark.parametrize(
    ("component", "rule"),
    [
        (Component.LATENCY, Reason.LATENCY_MODEL),
        (Component.CEILING, Reason.UTILIZATION_CEILING),
        (Component.QUEUE, Reason.QUEUE_DEPTH),
        (Component.BURST, Reason.BURST),
    ],
)
def test_component_left_out_recommends_nothing(component: Component, rule: Reason) -> None:
    """Ten seconds of 30/s for one replica of 10.26/s: a rate, a burst and a standing queue."""

    def reasons(tuning: Tuning) -> set[Reason]:
        service = Service(rate_rps=5.0, replicas=1, policy=policy(max_replicas=1, tuning=tuning))
        service.run(60)
        service.rate_rps = 30.0
        service.run(10)
        return rules(service.decisions[-1])

    others = frozenset({Component.BACKLOG})  # its reason is that of the queue rule
    every = reasons(Tuning(without=others))
    assert rule in every
    assert every - reasons(Tuning(without=others | {component})) == {rule}


def test_removal_without_its_margin_goes_further() -> None:
    # 17.3/s, known to 0.4/s: two carry 17.9/s within the target, 17.6/s within 0.92 of it
    without = frozenset({Component.CORRECTION})
    high = policy(max_replicas=3, utilization_ceiling=0.95, tuning=Tuning(without=without))
    kept = Service(rate_rps=17.3, replicas=3, policy=high)
    decision = kept.run(700)
    assert decision.replicas == 3
    assert decision.reason is Reason.SCALE_DOWN_MARGIN
    bare = replace(high, tuning=Tuning(without=without | {Component.REMOVAL_MARGIN}))
    assert Service(rate_rps=17.3, replicas=3, policy=bare).run(700).replicas == 2


@pytest.mark.parametrize(
    ("margin", "replicas"),
    [(1.0, 2), (1.05, 2), (1.2, 3)],
)
def test_arrival_margin_comes_from_the_tuning(margin: float, replicas: int) -> None:
    # 8.7/s per replica: 16 x 1.05 = 16.8 is below 17.4, 16 x 1.2 = 19.2 is not
    service = Service(
        rate_rps=16.0, replicas=1, policy=policy(tuning=Tuning(arrival_margin=margin))
    )
    decision = service.run(20)
    latency = [rule for rule in decision.recommendations if rule.rule is Reason.LATENCY_MODEL]
    assert [rule.replicas for rule in latency] == [replicas]
