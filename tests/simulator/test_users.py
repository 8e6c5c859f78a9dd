"""A closed loop of users who think between requests: throughput, steps and demand."""

from __future__ import annotations

import pytest

from headroom.simulator.clients import Clients, Users
from headroom.simulator.closed_loop import UserDemand, closed_loop
from headroom.simulator.compiled import replica_rows
from headroom.simulator.compiled.clients import client_kernel
from headroom.simulator.compiled.clients.client_layout import Count
from headroom.simulator.compiled.plant_layout import Tally
from headroom.simulator.plant import Server
from simulator.fakes_plant import exponential, service
from simulator.plants_of_clients import SECOND, plant


def mean_rps(users: int, think_s: float, service_s: float) -> float:
    """Return the throughput of M/M/1//N, the machine repairman: N users, one exponential server."""
    weights = [1.0]
    for waiting in range(users):
        weights.append(weights[-1] * (users - waiting) * service_s / think_s)
    return (1 - weights[0] / sum(weights)) / service_s


@pytest.mark.parametrize(("users", "think_s"), [(1, 1.0), (5, 0.5), (20, 2.0), (40, 2.0)])
def test_closed_loop_has_the_throughput_of_the_machine_repairman(
    users: int, think_s: float
) -> None:
    one = plant(Clients(users=users, think_s=think_s), server=exponential(0.1))
    one.run([], 20_000.0)
    one.check()
    expected_rps = mean_rps(users, think_s, 0.1)
    assert one.ended / 20_000.0 == pytest.approx(expected_rps, rel=0.02)


def test_users_follow_their_steps_and_never_have_two_requests() -> None:
    users: Users = ((0.0, 2), (100.0, 5), (200.0, 1))
    one = plant(Clients(users=users), server=Server(fixed_s=100.0, per_item_s=0.0, slots=9))
    in_flight = [one.run([], at).settle().in_flight for at in (50.0, 150.0, 250.0, 450.0)]
    assert in_flight == [2, 5, 5, 1]
    one.check()
    assert one.clients is not None
    client_kernel.dismiss(one.clients)
    one.run([])
    assert (one.in_flight, one.count(Count.WAKES)) == (0, 0)


def test_users_without_a_replica_do_not_stop_the_clock() -> None:
    one = plant(Clients(users=3))
    replica_rows.kill(one.tables, 0, 0.0)
    one.run([], 1.0)
    assert one.tally(Tally.FAILED) == pytest.approx(3 * 1000, abs=6)


def test_demand_of_users_is_that_of_a_healthy_service() -> None:
    demand = UserDemand(steps=((0.0, 10), (60.0, 40)), cycle_s=2.0, duration_s=100.0)
    (first, second) = demand.chunks(1)
    assert (len(first), len(second)) == (60 * 5, 40 * 20)
    assert (first[0], second[0]) == (0.1, 60.025)
    spec = service(exponential(0.1), clients=Clients(users=10, think_s=2.0), target_s=1.0)
    arrivals = closed_loop(spec, 50.0).arrivals
    (times_s,) = arrivals.chunks(1)
    assert 10 / 2.6 < len(times_s) / 50.0 < 10 / 2.1


def test_closed_loop_without_users_is_refused() -> None:
    with pytest.raises(ValueError, match="users must be given for a closed loop; got none"):
        closed_loop(service(SECOND), 50.0)
