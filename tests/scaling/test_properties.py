"""Properties of the decision for every policy, every state and every observation."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling import (
    Allocation,
    Direction,
    Freshness,
    Observation,
    Pod,
    PodSample,
    PodState,
    Policy,
    Reason,
    State,
    decide,
)
from headroom.scaling.limits.scale_down import UNMEASURED_START
from headroom.scaling.values.latency_counts import LatencyCounts
from support.fakes_scaling import BOUNDS_S, COST, Service, policy

NOW_S = 10_000.0


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    low = draw(st.integers(1, 10))
    return policy(
        latency_target_s=draw(st.sampled_from([0.05, 0.5, 1.5, 10.0])),
        queue_depth=draw(st.none() | st.integers(1, 50)),
        utilization_ceiling=draw(st.floats(0.1, 0.95)),
        min_replicas=low,
        max_replicas=draw(st.integers(low, 40)),
        scale_up_stabilization_s=draw(st.sampled_from([0.0, 10.0])),
        scale_down_stabilization_s=draw(st.sampled_from([0.0, 6.0, 60.0])),
    )


@st.composite
def histories(draw: st.DrawFn) -> Service:
    """A service that has been watched for a while under loads of every kind."""
    service = Service(
        rate_rps=draw(st.floats(0.0, 100.0)),
        replicas=draw(st.integers(1, 12)),
        policy=draw(policies()),
        gpus=draw(st.integers(1, 40)),
    )
    for _ in range(draw(st.integers(0, 4))):
        service.rate_rps = draw(st.floats(0.0, 150.0))
        service.scrape = draw(st.booleans())
        service.run(draw(st.sampled_from([2, 6, 30, 70])))
    service.scrape = True
    return service


@st.composite
def arbitrary_samples(draw: st.DrawFn, uids: list[str]) -> tuple[PodSample, ...]:
    """Scrapes of any pod, in any number, with any values a parser could let through."""
    values = st.floats(0.0, 1e15, allow_nan=False)
    samples = []
    for uid in draw(st.lists(st.sampled_from([*uids, "stranger"]), max_size=8)):
        counts = sorted(draw(st.lists(values, min_size=7, max_size=7)))
        samples.append(
            PodSample(
                pod=uid,
                time_s=draw(st.floats(0.0, 2 * NOW_S)),
                arrivals=draw(values),
                missed=draw(values),
                waiting=draw(st.integers(0, 10**9)),
                running=draw(st.integers(0, 10**9)),
                latency=LatencyCounts(bounds_s=BOUNDS_S, counts=tuple(counts)),
                batches=draw(values),
                batch_items=draw(values),
                batch_seconds=draw(values),
                cost=draw(st.none() | st.just(COST)),
            )
        )
    return tuple(samples)


@given(histories(), st.data())
@settings(max_examples=150)
def test_decision_is_within_bounds_and_has_a_message(service: Service, data: st.DataObject) -> None:
    samples = data.draw(arbitrary_samples(list(service.born)))
    observation = replace(service.observe(), samples=samples, now_s=service.now_s + 2)
    decision, _ = decide(service.policy, service.state, observation)
    assert service.policy.min_replicas <= decision.replicas <= service.policy.max_replicas
    assert decision.message
    assert (decision.direction is Direction.NONE) == (decision.replicas == decision.current)


@given(histories(), st.floats(0.0, 400.0))
@settings(max_examples=100)
def test_no_replica_is_removed_while_a_signal_is_missing(
    service: Service, silence_s: float
) -> None:
    current = min(service.replicas, service.policy.max_replicas)
    observation = replace(
        service.observe(), samples=(), now_s=service.now_s + 10.1 + silence_s, current=current
    )
    decision, _ = decide(service.policy, service.state, observation)
    if observation.count(PodState.READY):
        assert decision.signals.freshness is not Freshness.FRESH
    assert decision.replicas >= current


@given(histories(), st.integers(0, 11))
@settings(max_examples=100)
def test_no_replica_is_removed_while_a_ready_pod_is_silent(service: Service, victim: int) -> None:
    service.run(80)
    silent = list(service.born)[victim % len(service.born)]
    if silent not in service.ready():
        return
    for _ in range(10):
        service.now_s += 2.0
        current = min(service.replicas, service.policy.max_replicas)
        observation = service.observe()
        scraped = tuple(s for s in observation.samples if s.pod != silent)
        observation = replace(observation, samples=scraped, current=current)
        decision, service.state = decide(service.policy, service.state, observation)
        silent_s = service.now_s - service.state.windows.last[silent].time_s
        if silent_s > service.policy.stale_after_s:
            assert decision.replicas >= current


@given(histories(), st.floats(0.0, 1000.0), st.integers(0, 100))
@settings(max_examples=150)
def test_more_load_never_gives_fewer_replicas(
    service: Service, extra_arrivals: float, extra_waiting: int
) -> None:
    service.now_s += 2.0
    lighter = service.observe()
    heavier = replace(
        lighter,
        samples=tuple(
            replace(s, arrivals=s.arrivals + extra_arrivals, waiting=s.waiting + extra_waiting)
            for s in lighter.samples
        ),
    )
    few, _ = decide(service.policy, service.state, lighter)
    many, _ = decide(service.policy, service.state, heavier)
    if many.signals.arrival_rps.age_s != few.signals.arrival_rps.age_s:
        return  # a page that stays the same counts as not scraped, and the other one changed
    assert many.replicas >= few.replicas


@given(histories(), st.integers(0, 12))
@settings(max_examples=100)
def test_larger_allocation_never_gives_fewer_replicas(service: Service, allocated: int) -> None:
    service.now_s += 2.0
    fewer, more = (
        decide(
            service.policy,
            service.state,
            replace(
                service.observe(),
                allocation=Allocation(replicas=number, preempted_by="shop/ranker"),
            ),
        )[0]
        for number in (allocated, allocated + 1)
    )
    least = service.policy.min_replicas
    assert least <= fewer.replicas <= max(allocated, least)
    assert fewer.replicas <= more.replicas
    assert fewer.alone <= service.policy.max_replicas


@given(histories())
@settings(max_examples=150)
def test_utilization_stays_below_the_ceiling_unless_limited(
    service: Service,
) -> None:
    decision = service.tick()
    rate_rps = decision.signals.arrival_rps.value
    if rate_rps is None or decision.cost is None or not decision.signals.arrival_rps.fresh:
        return
    shortage = any(limit.limit is Reason.CAPACITY_SHORTAGE for limit in decision.limits)
    if decision.replicas == service.policy.max_replicas or shortage:
        return
    projected = rate_rps / (decision.replicas * decision.cost.full_batch_rps)
    assert projected <= service.policy.utilization_ceiling * (1 + 1e-6)


@given(policies(), st.floats(0.0, 120.0), st.integers(1, 12))
@settings(max_examples=40)
def test_constant_input_converges_and_stays(limits: Policy, rate_rps: float, replicas: int) -> None:
    service = Service(rate_rps=rate_rps, replicas=replicas, policy=limits)
    service.waiting.clear()
    service.run(400 + UNMEASURED_START * limits.scale_down_stabilization_s)
    tail = [decision.replicas for decision in service.decisions[-30:]]
    assert len(set(tail)) == 1


@given(histories())
@settings(max_examples=50)
def test_same_inputs_give_the_same_outputs(service: Service) -> None:
    service.now_s += 2.0
    observation = service.observe()
    once, _ = decide(service.policy, service.state, observation)
    twice, _ = decide(service.policy, service.state, observation)
    assert once == twice


@given(histories())
@settings(max_examples=50)
def test_checkpoint_survives_a_round_trip_through_json(service: Service) -> None:
    written = json.loads(json.dumps(service.state.to_checkpoint()))
    restored = State.from_checkpoint(written)
    assert restored.to_checkpoint() == written
    assert restored.cold_starts.seconds == service.state.cold_starts.seconds
    assert restored.learner.bins.keys() == service.state.learner.bins.keys()


@given(histories(), st.floats(0.1, 1e6))
@settings(max_examples=50)
def test_time_going_backwards_counts_as_no_time(service: Service, back_s: float) -> None:
    service.tick()
    observation = service.observe()
    observation = replace(observation, current=service.decisions[-1].replicas)
    now, _ = decide(service.policy, service.state, observation)
    earlier, state = decide(
        service.policy, service.state, replace(observation, now_s=observation.now_s - back_s)
    )
    assert earlier == now
    assert state.last_s == service.now_s


@given(st.lists(st.sampled_from(list(PodState)), max_size=6), st.integers(1, 20))
@settings(max_examples=100)
def test_service_never_scraped_keeps_its_replicas(states: list[PodState], current: int) -> None:
    pods = tuple(
        Pod(uid=str(number), state=state, created_s=NOW_S - 5)
        for number, state in enumerate(states)
    )
    observation = Observation(now_s=NOW_S, current=current, pods=pods)
    decision, _ = decide(policy(), State.initial(), observation)
    assert decision.replicas == current
