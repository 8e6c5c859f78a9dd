"""An exception inside the decision costs one sample or one tick."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from headroom.api import InferenceService
from headroom.controller.decide.decide_tick import DecisionInputs, DecisionResult, ServiceState
from headroom.controller.decide.recovery import RESTART_AFTER, DecisionFailure, decide_or_keep
from headroom.controller.gather.gateways.route_status import NOT_ROUTED
from headroom.scaling import (
    CostModel,
    Direction,
    Observation,
    Pod,
    PodSample,
    PodState,
    State,
)
from headroom.scaling.latency.correction import Correction
from headroom.telemetry.samples.pod_samples import PodSamples
from support.fakes_scaling import served_sample

START_S = 1_800_000_000.0
TICK_S = 2.0
COST = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4)
_MANIFEST = {
    "apiVersion": "headroom.dev/v1alpha1",
    "kind": "InferenceService",
    "metadata": {"name": "resnet", "namespace": "default", "uid": "u", "generation": 1},
    "spec": {
        "runtime": {"image": "localhost/none:1"},
        "slo": {"latency": {"target": "1.5s"}},
        "scaling": {"minReplicas": 1, "maxReplicas": 9},
    },
}
SERVICE = InferenceService.parse(_MANIFEST)
Outcome = tuple[DecisionResult, DecisionFailure | None]


class Fleet:
    """Replicas (three by default) that take 6 requests per second each, tick by tick."""

    def __init__(self, state: State | None = None, replicas: int = 3) -> None:
        self.replicas, self.tick = replicas, 0
        self.policy = SERVICE.to_policy(tick_s=TICK_S)
        self.known = ServiceState(state=state or State.initial())

    def sample(self, number: int) -> PodSample:
        served = 12.0 * self.tick
        return served_sample(f"pod-{number}", START_S + TICK_S * self.tick, served)

    def next(self, unusable: int = 0) -> Outcome:
        """Play one tick in which the samples of the last replicas cannot be used."""
        self.tick += 1
        good = self.replicas - unusable
        samples = [self.sample(number) for number in range(good)]
        samples += [_unusable(self.sample(number)) for number in range(good, self.replicas)]
        pods = tuple(
            Pod(uid=f"pod-{number}", state=PodState.READY, created_s=1.0, ready_s=2.0)
            for number in range(self.replicas)
        )
        inputs = DecisionInputs(
            service=SERVICE,
            policy=self.policy,
            min_replicas=self.policy.min_replicas,
            observation=Observation(
                now_s=START_S + TICK_S * self.tick,
                current=self.replicas,
                pods=pods,
                samples=tuple(samples),
            ),
            samples=PodSamples(SERVICE.spec.runtime.server, None),
            route=NOT_ROUTED,
        )
        result, failure = decide_or_keep(inputs, self.known)
        self.known = result.after
        return result, failure


def _unusable(sample: PodSample) -> PodSample:
    """Return a sample that no edge lets through: a counter is no number."""
    return replace(sample, arrivals=cast("float", "many"))


def test_recovery_without_an_exception_changes_nothing() -> None:
    fleet = Fleet()
    outcomes = [fleet.next() for _ in range(30)]
    assert all(failure is None for _, failure in outcomes)
    assert outcomes[-1][0].decision.signals.arrival_rps.value == pytest.approx(18.0, rel=0.01)


@pytest.mark.parametrize("unusable", [1, 2])
def test_unusable_samples_are_left_out_and_named_and_the_others_count(unusable: int) -> None:
    fleet = Fleet()
    for _ in range(10):
        fleet.next()
    result, failure = fleet.next(unusable)
    assert failure is not None
    assert not failure.kept
    left_out = {one.pod for one in result.decision.left_out}
    assert left_out == {f"pod-{2 - number}" for number in range(unusable)}
    assert all("makes the decision raise error" in one.why for one in result.decision.left_out)
    kept = result.after.state.windows.last["pod-0"]
    assert kept.time_s == result.observation.now_s, "the sample of another replica was used"
    assert fleet.next()[1] is None


def test_no_usable_sample_keeps_the_replicas_and_goes_on_afterwards() -> None:
    fleet = Fleet()
    for _ in range(20):
        fleet.next()
    learned = fleet.known.state.cost
    result, failure = fleet.next(3)
    assert failure is not None
    assert failure.kept
    assert result.decision.replicas == 3
    assert fleet.next()[1] is None
    assert fleet.known.state.cost is not None
    assert learned is not None
    assert fleet.known.state.cost.fixed_s == pytest.approx(learned.fixed_s, rel=0.05)


def test_state_that_fails_is_discarded_after_three_ticks() -> None:
    fleet = Fleet(State(correction=Correction(logarithm=1e9)))
    failures = [fleet.next()[1] for _ in range(RESTART_AFTER)]
    assert [failure is not None and failure.restarted for failure in failures] == [
        False,
        False,
        True,
    ]
    assert fleet.known.state.correction == Correction()
    assert all(fleet.next()[1] is None for _ in range(30))


def test_policy_that_fails_keeps_the_replicas_and_raises_to_the_minimum() -> None:
    fleet = Fleet()
    fleet.policy = replace(fleet.policy, latency_target_s=cast("float", "soon"), min_replicas=5)
    for _ in range(60):
        result, failure = fleet.next()
        if failure is not None:
            assert result.decision.direction is not Direction.DOWN
            assert result.decision.replicas >= 3
    assert failure is not None, "it could not fail"
    assert result.decision.replicas == 5


def test_no_replica_is_removed_in_a_tick_with_an_exception() -> None:
    fleet = Fleet(replicas=9)
    directions = [fleet.next(unusable=1)[0].decision.direction for _ in range(200)]
    assert Direction.DOWN not in directions
