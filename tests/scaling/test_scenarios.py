"""The decision in a closed loop, as scenarios."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import Direction, Freshness, Reason, State
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.policy import Routing
from support.fakes_scaling import COST, Service, policy


def test_constant_load_settles_on_the_needed_replicas() -> None:
    service = Service(rate_rps=20.0, replicas=1)
    decision = service.run(120)
    # p95 of 1.5 s holds up to 8.7/s per replica; 20/s x 1.2 over that, and 20/s over 0.8 x 10.26/s
    assert service.replicas == 3
    assert decision.direction is Direction.NONE
    assert decision.utilization == pytest.approx(20.0 / (3 * COST.full_batch_rps), rel=0.01)


def test_tripled_load_scales_up_within_a_burst_window() -> None:
    service = Service(rate_rps=5.0, replicas=1)
    service.run(60)
    assert service.replicas == 1
    service.rate_rps, stepped_s = 15.0, service.now_s
    while service.tick().direction is not Direction.UP:
        pass
    assert service.now_s - stepped_s <= service.policy.burst_windows_s[0] + 2 * service.tick_s


def test_load_gone_scales_down_after_the_window() -> None:
    service = Service(rate_rps=40.0, replicas=6, policy=policy(min_replicas=2))
    service.state = replace(service.state, cold_starts=ColdStarts(seconds=(5.0,)))
    service.run(90)
    held, gone_s = service.replicas, service.now_s
    service.rate_rps = 0.0
    while service.now_s - gone_s < 60:
        assert service.tick().replicas == held
    service.run(60)
    assert service.replicas == 2
    assert service.decisions[-1].reason is Reason.MIN_REPLICAS


def test_standing_queue_without_a_rate_scales_up() -> None:
    service = Service(rate_rps=COST.full_batch_rps, replicas=1, policy=policy(queue_depth=4))
    service.waiting["pod-0"] = 30.0
    assert service.run(4).replicas == 1
    decision = service.run(2)
    assert decision.signals.arrival_rps.freshness is Freshness.MISSING
    # At capacity, and 26 too many to be gone in a minute: (8.8 + 0.4) x 1.2 / 8.8 = 1.3.
    assert decision.replicas == 2
    assert decision.reason is Reason.QUEUE_DEPTH


def test_queue_between_batches_adds_no_replica() -> None:
    service = Service(rate_rps=4.0, replicas=1, policy=policy(queue_depth=4))
    for number in range(60):
        service.waiting["pod-0"] = 60.0 if number % 3 == 0 else 0.0
        assert service.tick().replicas == 1


@pytest.mark.parametrize("silent_s", [8, 30, 300], ids=["fresh still", "stale", "absent"])
def test_silent_pods_keep_the_replicas(silent_s: float) -> None:
    service = Service(rate_rps=40.0, replicas=6)
    service.run(90)
    held = service.replicas
    service.scrape, service.rate_rps = False, 0.0
    for _ in range(int(silent_s / 2)):
        assert service.tick().replicas >= held


def test_hold_after_missing_metrics_restarts() -> None:
    service = Service(rate_rps=40.0, replicas=6)
    service.run(90)
    held = service.replicas
    service.rate_rps = 0.0
    service.run(40)
    service.scrape = False
    service.run(20)
    service.scrape, back_s = True, service.now_s
    while service.tick().replicas == held:
        pass
    assert service.now_s - back_s >= 60


class _OneSilent(Service):
    """A service of which one replica may not be scraped for a while."""

    silent = False

    def samples(self) -> tuple[PodSample, ...]:
        return super().samples()[1 if self.silent else 0 :]


def test_replicas_requested_while_one_is_silent_are_held_when_it_answers() -> None:
    service = _OneSilent(rate_rps=40.0, replicas=6)
    service.run(200)
    before = service.replicas
    service.silent = True
    service.run(10)
    service.rate_rps = 80.0
    decision = service.run(8)
    assert decision.signals.freshness is Freshness.STALE
    assert service.replicas > before
    raised, back_s = service.replicas, service.now_s
    service.silent, service.rate_rps = False, 40.0
    while service.now_s - back_s < service.policy.scale_down_stabilization_s - service.tick_s:
        assert service.tick().replicas >= raised


def test_operator_restart_keeps_the_replicas() -> None:
    service = Service(rate_rps=40.0, replicas=6)
    service.run(120)
    held = service.replicas
    service.state = State.from_checkpoint(service.state.to_checkpoint())
    for _ in range(20):
        decision = service.tick()
        assert decision.replicas == held
        assert decision.reason is not Reason.BURST


def test_idle_service_after_a_restart_keeps_its_replicas() -> None:
    service = Service(rate_rps=0.0, replicas=6)
    first_s = service.now_s
    while service.tick().replicas == 6:
        pass
    assert service.now_s - first_s >= 60


def test_unschedulable_replicas_add_no_more() -> None:
    service = Service(rate_rps=5.0, replicas=1, gpus=2, policy=policy(queue_depth=32))
    service.run(60)
    service.rate_rps = 30.0
    service.run(300)  # the queue grows by 9/s all the time
    decision = service.decisions[-1]
    assert decision.counts.ready == 2
    assert decision.counts.unschedulable == 2
    assert service.replicas == 4  # 30/s over 8.7/s per replica, whatever waits
    assert decision.reason is Reason.CAPACITY_SHORTAGE


def test_late_one_of_two_replicas_is_replaced_once() -> None:
    service = Service(rate_rps=9.0, replicas=2, load_s=10_000.0)
    service.born["pod-0"] = -20_000.0
    decision = service.run(60)
    assert decision.counts.ready == 1
    assert decision.counts.late == 1  # beyond the warm-up timeout: not counted
    assert service.replicas == 3
    decision = service.run(service.policy.warmup_timeout_s)
    assert decision.counts.late == 2  # the successor, too: more would not help
    assert service.replicas == 3


def test_late_replica_among_many_is_replaced() -> None:
    service = Service(rate_rps=28.0, replicas=4)  # 28/s x 1.2 over 8.7/s per replica: 4
    service.run(70)
    assert service.replicas == 4
    service.load_s = 1e6  # from now on nothing becomes ready but what is very old
    for uid in service.born:
        service.born[uid] = service.now_s - 2e6
    service.born["pod-3"] = service.now_s - service.policy.warmup_timeout_s - 1
    decision = service.run(service.policy.warmup_timeout_s)
    assert (decision.counts.ready, decision.counts.late) == (3, 0)  # it was ready: as at first
    decision = service.run(4)
    assert (decision.counts.ready, decision.counts.late) == (3, 1)
    assert decision.replicas == 5


def test_infeasible_target_adds_no_replicas_for_latency() -> None:
    service = Service(rate_rps=8.0, replicas=1, policy=policy(latency_target_s=0.2))
    decision = service.run(60)
    assert not decision.feasible
    assert decision.floor_latency_s == pytest.approx(0.21)
    assert all(rule.rule is not Reason.LATENCY_MODEL for rule in decision.recommendations)
    assert service.replicas == 1  # 8/s over 0.8 x 10.26/s


def test_decision_reports_what_the_floor_carries() -> None:
    """The rate of two replicas within 1.5 s, found by trying loads on them."""
    service = Service(rate_rps=2.0, replicas=2, policy=policy(min_replicas=2))
    decision = service.run(60)
    assert decision.cost
    assert decision.floor_rps
    tail = TailLatency(cost=decision.cost, percentile=0.95, routing=service.policy.routing)
    assert tail.latency_s(0.99 * decision.floor_rps, 2) <= 1.5
    assert tail.latency_s(1.01 * decision.floor_rps, 2) > 1.5


def test_counterfactuals_report_one_more_and_one_less() -> None:
    service = Service(rate_rps=20.0, replicas=3)
    decision = service.run(60)
    fewer, same, more = decision.counterfactuals
    assert (fewer.replicas, same.replicas, more.replicas) == (2, 3, 4)
    assert fewer.latency_s > same.latency_s > more.latency_s
    assert fewer.utilization == pytest.approx(20.0 / (2 * COST.full_batch_rps), rel=0.01)


def test_no_replica_is_removed_during_a_rollout() -> None:
    service = Service(rate_rps=0.0, replicas=4)
    observe = service.observe
    service.observe = lambda: replace(observe(), rolling=True)  # type: ignore[method-assign]
    decision = service.run(200)
    assert service.replicas == 4
    assert decision.reason is Reason.ROLLING_OUT


def test_manual_scale_up_is_kept_for_a_whole_window() -> None:
    service = Service(rate_rps=5.0, replicas=1)
    service.run(120)
    service.scale(4)
    raised_s = service.now_s
    while service.tick().replicas == 4:
        pass
    assert service.now_s - raised_s >= service.policy.scale_down_stabilization_s


def test_replicas_that_start_slower_than_usual_are_kept_for_the_queue_that_waits_for_them() -> None:
    service = Service(
        rate_rps=15.0, replicas=2, policy=policy(routing=Routing.LEAST_IN_FLIGHT), load_s=400.0
    )
    service.state = replace(service.state, cold_starts=ColdStarts(seconds=(60.0,)))
    service.run(60)
    service.rate_rps = 40.0
    service.run(350)
    assert service.replicas > 6  # what the arrivals need
    assert Direction.DOWN not in {decision.direction for decision in service.decisions}


def test_lowered_max_replicas_applies_without_metrics() -> None:
    service = Service(rate_rps=0.0, replicas=6, policy=policy(max_replicas=4))
    service.scrape = False
    assert service.tick().replicas == 4
    service.policy = policy(min_replicas=5, max_replicas=8)
    assert service.tick().replicas == 5


def test_schedule_that_binds_is_named() -> None:
    service = Service(
        rate_rps=0.5, replicas=1, policy=policy(min_replicas=3, schedule="office hours")
    )
    rising = service.run(1)
    assert (rising.replicas, rising.reason) == (3, Reason.MIN_REPLICAS)
    assert "schedule office hours requires at least 3 (3 instead of 1)" in rising.message
    settled = service.run(120)
    assert (settled.replicas, settled.reason) == (3, Reason.MIN_REPLICAS)
    assert "schedule office hours requires at least 3" in settled.message
    assert settled.floor_replicas == 3
