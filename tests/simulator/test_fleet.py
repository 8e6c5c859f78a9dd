"""Pods over time: cold starts, GPUs in line, removal, drain, kill; GPU-seconds counted by hand."""

from __future__ import annotations

import pytest

from headroom.scaling.values.policy import Routing
from headroom.simulator.cold_start import ColdStart, Phase
from headroom.simulator.compiled.plant_layout import Tally
from headroom.simulator.plant import Cluster, Server
from simulator.fakes_fleet import FleetWorld, spec


def test_cold_start_is_the_sum_of_its_phases() -> None:
    world = FleetWorld(spec(), initial=(1,)).run(5).scale(3)
    assert world.states() == "RWW"
    assert world.run(34.9).states() == "RWW"
    assert world.run(35.0).states() == "RRR"
    pod = world.fleet.replicas[1].as_pod()
    assert (pod.created_s, pod.scheduled_s, pod.ready_s) == (5.0, 5.0, 35.0)
    # one from 0, two from 5, at 100; 2 x 30 s before ready
    assert world.run(100).gpu_s() == (100 + 2 * 95, 60.0)


def test_cold_start_phases_are_lognormal_around_medians() -> None:
    start = ColdStart(phases=(Phase(name="warming", median_s=60.0, spread=1.5),))
    world = FleetWorld(spec(cold_start=start))
    drawn = sorted(world.fleet.draw_start_s() for _ in range(4001))
    assert drawn[2000] == pytest.approx(60.0, rel=0.03)
    assert drawn[round(0.8413 * 4000)] == pytest.approx(90.0, rel=0.04)


def test_pods_without_gpu_wait_and_start_cold_later() -> None:
    world = FleetWorld(spec(), cluster=Cluster(gpus=2), initial=(1,)).scale(4)
    assert world.states() == "RWUU"
    assert world.run(60).states() == "RRUU"
    world.fleet.kill(world.ready()[:1], 60.0)
    assert world.states() == "RWUU", "the oldest waiting pod got it; one was replaced"
    assert world.run(90).states() == "RRUU"
    assert world.gpu_s() == (60 + 90 + 30, 30 + 30)


def test_initial_pods_without_gpu_start_cold_later() -> None:
    world = FleetWorld(spec(), cluster=Cluster(gpus=1), initial=(2,)).run(10)
    assert world.states() == "RU"
    world.fleet.kill(world.ready(), 10.0)
    assert world.states() == "WU"
    assert world.run(39.9).states() == "WU"
    assert world.run(40.0).states() == "RU"


def test_free_gpus_are_assigned_by_priority_then_age() -> None:
    low, high = spec("low"), spec("high", priority=5)
    world = FleetWorld(low, high, cluster=Cluster(gpus=3), initial=(1, 1))
    first, second = world.fleets
    world.scale(3, first)
    assert (world.states(first), world.states(second)) == ("RWU", "R")
    world.run(1).scale(2, second)
    assert (world.states(first), world.states(second)) == ("RWU", "RU")
    world.run(2).scale(1, first)
    assert (world.states(first), world.states(second)) == ("R", "RW")


def test_initial_gpus_are_assigned_by_priority() -> None:
    low, high = spec("low"), spec("high", priority=5)
    world = FleetWorld(low, high, cluster=Cluster(gpus=3), initial=(2, 2))
    assert [world.states(fleet) for fleet in world.fleets] == ["RU", "RR"]


def test_provisioned_node_delays_pod_without_cost() -> None:
    world = FleetWorld(spec(), cluster=Cluster(provision_s=100.0), initial=(1,))
    assert world.states() == "R", "initial pods have their nodes"
    assert world.scale(2).run(99).states() == "RU"
    assert world.run(100).states() == "RW"
    assert world.run(130).states() == "RR"
    assert world.gpu_s() == (130 + 30, 30.0)


def test_pod_removed_before_its_node_costs_nothing() -> None:
    world = FleetWorld(spec(), cluster=Cluster(gpus=2, provision_s=100.0), initial=(1,))
    world.scale(2).run(50).scale(1).run(60).scale(2)
    assert world.run(159).states() == "RU"
    assert world.run(161).states() == "RW"
    assert world.gpu_s() == (161 + 1, 1.0)


def test_scale_down_removes_unschedulable_then_warming_then_newest_ready() -> None:
    world = FleetWorld(spec(), cluster=Cluster(gpus=5), initial=(2,)).scale(3).run(40)
    world.scale(5).run(41).scale(7)
    assert (world.states(), world.uids()) == ("RRRWWUU", list("0123456"))
    assert world.scale(6).states() == "RRRWWU"
    assert world.scale(4).states() == "RRRW"
    assert world.scale(2).uids() == list("01"), "the warming one, then the last to be ready"
    # two for 41 s, one for 41, of it 30 starting; two for 1 s that never became ready
    assert world.gpu_s() == (3 * 41 + 2 * 1, 30 + 2)


def test_draining_pod_finishes_requests_and_gets_no_new_ones() -> None:
    world = FleetWorld(spec(routing=Routing.ROUND_ROBIN), initial=(2,))
    world.run(10, [9.0, 9.0, 9.0, 9.0, 9.0, 9.0]).scale(1)
    assert world.states() in ("RT", "TR")
    world.run(60, [10.5, 10.6])
    assert world.states() == "R"
    assert world.tally(Tally.REQUESTS) == 8
    assert world.tally(Tally.WITHIN) == 8
    # three requests from 9 s on keep it until 12 s, seen by the check of that second
    assert world.gpu_s()[0] == 60 + 12


def test_requests_beyond_drain_time_fail() -> None:
    world = FleetWorld(spec(drain_s=2.5), initial=(1,))
    world.run(10, [9.5] * 6).scale(0)
    assert world.run(12.4).states() == "T"
    world.run(20)
    # ends at 10.5, 11.5, 12.5; the kill is at 12.5 and follows what ends then
    assert (world.tally(Tally.WITHIN), world.tally(Tally.FAILED)) == (3, 3)
    assert world.gpu_s()[0] == 12.5
    assert world.fleet.plant.in_flight == 0


def test_killed_pod_loses_requests_and_is_replaced() -> None:
    slots = Server(fixed_s=1.0, per_item_s=0.0, slots=3)
    world = FleetWorld(spec(server=slots), initial=(2,))
    world.run(10, [9.5] * 10)
    world.fleet.kill(world.ready()[:1], 10.0)
    assert (world.states(), world.uids()) == ("RW", ["1", "2"])
    assert (world.tally(Tally.FAILED), world.fleet.plant.in_flight) == (5, 5)
    world.run(50)
    assert (world.tally(Tally.WITHIN), world.states()) == (5, "RR")
    assert world.gpu_s() == (10 + 50 + 40, 30.0)


def test_freed_gpu_is_reassigned_when_it_is_free() -> None:
    world = FleetWorld(spec("first"), spec("second"), cluster=Cluster(gpus=1), initial=(1, 0))
    world.run(10, [9.8]).scale(0)
    world.run(10.5).scale(1, world.fleets[1])
    world.run(60)
    pod = world.fleets[1].replicas[0]
    assert pod.scheduled_s is not None
    assert pod.created_s <= pod.scheduled_s == 11.0


def test_requests_without_ready_replica_fail() -> None:
    world = FleetWorld(spec()).scale(1).run(40, [10.0, 29.9, 30.1])
    assert (world.tally(Tally.FAILED), world.tally(Tally.WITHIN)) == (2, 1)


def test_central_queue_keeps_requests_until_a_replica_is_ready() -> None:
    world = FleetWorld(spec(routing=Routing.CENTRAL, target_s=100.0)).scale(1)
    world.run(29.0, [10.0, 20.0])
    assert world.fleet.plant.in_flight == 2
    world.run(60.0)
    assert world.tally(Tally.WITHIN) == 2


def test_draining_replica_of_central_queue_finishes_only_its_requests() -> None:
    world = FleetWorld(spec(routing=Routing.CENTRAL, target_s=100.0), initial=(2,))
    world.run(10.0, [9.9] * 10)  # caps of two: four are out, six wait
    world.scale(1)
    assert world.states() in ("RT", "TR")
    world.run(60.0)
    assert (world.tally(Tally.WITHIN), world.tally(Tally.FAILED)) == (10, 0)
    # the removed one ends its two at 10.9 and 11.9, seen at 12
    assert world.gpu_s()[0] == 60 + 12


def test_reused_rows_start_at_zero() -> None:
    world = FleetWorld(spec(), initial=(1,))
    for step in range(1, 60):
        at_s = 40.0 * step
        world.run(at_s, [at_s - 2.0]).scale(2 if step % 2 else 1)
    assert world.fleet.plant.rows == 8
    assert world.tally(Tally.WITHIN) == 59


def test_fleet_grows_while_replicas_are_busy() -> None:
    """Nothing in flight is lost or overtaken when the arrays grow."""
    world = FleetWorld(spec(routing=Routing.CENTRAL, target_s=1000.0), initial=(2,))
    world.scale(40).run(200.0, [float(at // 10) for at in range(200)])
    assert world.states() == "R" * 40
    assert world.tally(Tally.WITHIN) == 200
