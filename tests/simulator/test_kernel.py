"""The compiled plant: routing, limits, kills and growth by hand, and its invariants at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling.values.policy import Routing
from headroom.simulator.clients import Clients
from headroom.simulator.compiled import replica_rows
from headroom.simulator.compiled.plant_layout import (
    BOUNDS_S,
    COLUMNS,
    NONE,
    Column,
    Number,
    Quantity,
    Tally,
)
from headroom.simulator.plant import Server
from simulator.fakes_plant import ALONE, SERVERS, Plant, Times, poisson, service

SECOND = Server(fixed_s=1.0, per_item_s=0.0)
"""One request a second."""


def arrivals(plant: Plant) -> list[int]:
    """Requests that reached each replica."""
    return [int(plant.counter(row, Column.ARRIVALS)) for row in range(plant.rows)]


@pytest.mark.parametrize(
    ("routing", "expected"),
    [
        (Routing.ROUND_ROBIN, [100, 100, 100, 100]),
        (Routing.LEAST_IN_FLIGHT, [100, 100, 100, 100]),
        (Routing.CENTRAL, [100, 100, 100, 100]),
    ],
    ids=lambda value: value.value if isinstance(value, Routing) else "",
)
def test_least_in_flight_routing_spreads_evenly(routing: Routing, expected: list[int]) -> None:
    plant = Plant(service(SECOND, routing=routing), 4).run([float(at) for at in range(400)])
    assert arrivals(plant) == expected


def test_sticky_connection_stays_until_its_replica_closes() -> None:
    plant = Plant(service(SECOND, routing=Routing.STICKY, connections=1), 3)
    plant.run([0.0, 2.0, 4.0], 10.0)
    (first,) = (row for row in range(3) if arrivals(plant)[row])
    assert arrivals(plant)[first] == 3
    replica_rows.close(plant.tables, first)
    plant.run([10.0, 12.0], 20.0)
    assert arrivals(plant)[first] == 3
    assert sorted(arrivals(plant)) == [0, 2, 3]


def test_sticky_connections_of_first_replica_stay_when_more_come() -> None:
    """Keep-alive clients do not see a scale-up: what a ClusterIP is infamous for."""
    plant = Plant(service(SECOND, routing=Routing.STICKY, connections=8)).run(
        [float(at) for at in range(200)]
    )
    plant.grow(4)
    for row in (1, 2, 3):
        replica_rows.admit(plant.tables, row, plant.now_s)
    plant.run([1000.0 + at for at in range(100)])
    assert arrivals(plant) == [300, 0, 0, 0]


def test_sticky_connections_without_replica_bind_to_the_next_one() -> None:
    plant = Plant(service(SECOND, routing=Routing.STICKY, connections=2))
    plant.run([0.0, 1.0, 2.0, 3.0], 5.0)
    replica_rows.kill(plant.tables, 0, 5.0)
    plant.run([6.0], 10.0)
    assert plant.tally(Tally.FAILED) == 1
    replica_rows.admit(plant.tables, 0, 10.0)
    plant.run([11.0, 13.0, 15.0])
    assert plant.tally(Tally.WITHIN) == 7
    plant.check()


def test_request_beyond_its_deadline_is_never_started() -> None:
    # five at 0: begun at 0, 1, 2; at 3 the last two have waited longer than 2.5 s
    plant = Plant(service(SECOND, clients=Clients(deadline_s=2.5))).run([0.0] * 5)
    assert (plant.tally(Tally.WITHIN), plant.tally(Tally.EXPIRED)) == (3, 2)
    assert plant.counter(0, Column.EXPIRED) == 2
    plant.check()


def test_started_request_of_timed_out_client_is_cancelled_at_its_end() -> None:
    # begun at 0, 1, 2: the third ends at 3 s, after 2.5 s of patience; the others were cancelled
    plant = Plant(service(SECOND, clients=Clients(timeout_s=2.5))).run([0.0] * 5)
    assert (plant.tally(Tally.WITHIN), plant.tally(Tally.CANCELLED)) == (2, 3)
    assert plant.counter(0, Column.EXECUTIONS) == 3
    assert plant.counter(0, Column.ANSWERED) == 2
    plant.check()


def test_waiting_requests_time_out_without_other_events() -> None:
    slow = Server(fixed_s=100.0, per_item_s=0.0)
    plant = Plant(service(slow, clients=Clients(timeout_s=5.0))).run([0.0, 1.0, 2.0], 6.5)
    plant.settle()
    assert (plant.tally(Tally.CANCELLED), plant.in_flight) == (1, 2)
    assert plant.counter(0, Column.WAITING) == 1
    plant.check()


def test_full_queue_refuses_requests() -> None:
    plant = Plant(service(SECOND, clients=Clients(max_waiting=2))).run([0.0] * 5, 0.5)
    assert (plant.tally(Tally.REFUSED), plant.in_flight) == (2, 3)
    assert plant.counter(0, Column.ARRIVALS) == 5
    assert plant.counter(0, Column.REFUSED) == 2
    plant.check()


def test_server_without_queue_serves_requests() -> None:
    plant = Plant(service(SECOND, clients=Clients(max_waiting=0))).run([0.0, 0.5, 1.5])
    assert (plant.tally(Tally.WITHIN), plant.tally(Tally.REFUSED)) == (2, 1)


@pytest.mark.parametrize(("limit", "refused"), [(0, 2), (1, 1), (2, 0)])
def test_full_central_queue_refuses_only_without_free_replica(limit: int, refused: int) -> None:
    one = service(SECOND, routing=Routing.CENTRAL, cap=2, clients=Clients(max_waiting=limit))
    plant = Plant(one, 2).run([0.0] * 6, 0.5)
    assert plant.tally(Tally.REFUSED) == refused
    plant.check()


def test_timeouts_with_central_queue_end_waiting_requests_everywhere() -> None:
    one = service(SECOND, routing=Routing.CENTRAL, cap=2, clients=Clients(timeout_s=1.5))
    plant = Plant(one, 2).run([0.0] * 8)
    # two end at 1 s; their successors begin then and end at 2 s, cancelled like the rest
    assert (plant.tally(Tally.WITHIN), plant.tally(Tally.CANCELLED)) == (2, 6)
    plant.check()


def test_kill_ends_only_executions_of_its_row() -> None:
    three = Server(fixed_s=1.0, per_item_s=0.0, slots=3)
    plant = Plant(service(three, routing=Routing.ROUND_ROBIN), 4)
    plant.run([0.01 * at for at in range(24)], 0.5)
    replica_rows.kill(plant.tables, 2, 0.5)
    plant.check()
    assert (plant.tally(Tally.FAILED), plant.in_flight) == (6, 18)
    plant.run([])
    assert (plant.tally(Tally.WITHIN), plant.in_flight) == (18, 0)
    plant.check()


def test_growing_keeps_running_and_centrally_waiting_requests() -> None:
    two = Server(fixed_s=1.0, per_item_s=0.0, slots=2)
    plant = Plant(service(two, routing=Routing.CENTRAL, cap=2), 2)
    plant.run([0.01 * at for at in range(10)], 0.5)
    for rows in (3, 8, 50):
        plant.grow(rows)
        plant.check()
        assert plant.tables.waiting[plant.rows] == 6
    replica_rows.admit(plant.tables, 49, 0.5)
    assert plant.tables.waiting[plant.rows] == 4
    plant.run([])
    assert plant.tally(Tally.WITHIN) == 10
    plant.check()


def test_requests_beyond_the_node_pool_are_not_lost() -> None:
    plant = Plant(service(SECOND)).run([0.0] * 10_000, 3.5)
    assert (plant.in_flight, plant.tally(Tally.WITHIN)) == (9_997, 3)
    plant.check()
    assert len(plant.tables.arrived_s) == 16_384


def test_node_pool_does_not_grow_with_the_trace() -> None:
    plant = Plant(service(SECOND, routing=Routing.LEAST_IN_FLIGHT), 4).run(poisson(3.0, 100_000))
    assert len(plant.tables.arrived_s) == 4096


def test_slow_replica_and_costly_requests_take_longer() -> None:
    plant = Plant(service(SECOND, routing=Routing.ROUND_ROBIN), 2)
    plant.tables.slowness[1] = 3.0
    plant.tables.quantities[Quantity.COST_FACTOR] = 2.0
    plant.run([float(10 * at) for at in range(8)])
    seconds = [plant.counter(row, Column.EXECUTION_S) for row in range(2)]
    assert seconds == pytest.approx([4 * 2.0, 4 * 6.0])


def test_answers_count_in_first_bucket_at_or_above_latency() -> None:
    """Each bound itself, and values next to it."""
    for index, bound_s in enumerate(BOUNDS_S[:-1]):
        for cost_s, bucket in ((bound_s, index), (bound_s * (1 + 1e-9), index + 1)):
            plant = Plant(service(Server(fixed_s=cost_s, per_item_s=0.0))).run([0.0])
            counts = plant.tables.counters[0, COLUMNS:]
            assert np.flatnonzero(counts).tolist() == [bucket], cost_s


def state(plant: Plant) -> list[bytes]:
    return [table.tobytes() for table in plant.settle().tables]


def test_run_with_same_seed_is_identical_and_with_another_differs() -> None:
    one = service(ALONE, routing=Routing.POWER_OF_TWO)
    times_s = poisson(8.0, 5_000)
    first, again, other = (state(Plant(one, 3, seed=seed).run(times_s)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_arrivals_in_pieces_equal_arrivals_at_once() -> None:
    one = service(ALONE, routing=Routing.RANDOM)
    times_s = poisson(8.0, 5_000)
    pieces = Plant(one, 3)
    for piece in np.array_split(times_s, 50):
        pieces.run(piece, float(piece[-1]) + 1e-9)
    assert state(pieces.run([])) == state(Plant(one, 3).run(times_s))


LIMITS = st.builds(
    Clients,
    timeout_s=st.none() | st.floats(0.2, 5.0),
    deadline_s=st.none() | st.floats(0.2, 5.0),
    max_waiting=st.none() | st.integers(0, 6),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pass", "pass", "open", "close", "kill", "grow"]),
        st.integers(0, 30),
        st.floats(0.0, 2.0),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(
    server=SERVERS,
    limits=LIMITS,
    routing=st.sampled_from(list(Routing)),
    cap=st.none() | st.integers(1, 4),
    steps=STEPS,
    seed=st.integers(0, 2**32),
)
def test_any_sequence_conserves_requests_order_and_littles_law(
    server: Server,
    limits: Clients,
    routing: Routing,
    cap: int | None,
    steps: list[tuple[str, int, float]],
    seed: int,
) -> None:
    one = service(server, routing=routing, cap=cap, connections=5, clients=limits, target_s=1.0)
    plant, chance = Plant(one, 2, seed=seed), np.random.default_rng(seed)
    sent = 0
    for action, number, seconds in steps:
        p, row = plant.tables, number % plant.rows
        if action == "grow" and plant.rows < 12:
            plant.grow(plant.rows + 1 + number % 3)
        elif action == "open" and not p.open[row] and p.in_flight[row] == 0:
            replica_rows.admit(p, row, plant.now_s)
        elif action == "close":
            replica_rows.close(p, row)
        elif action == "kill":
            replica_rows.kill(p, row, plant.now_s)
        end_s = plant.now_s + seconds
        times_s: Times = np.sort(chance.uniform(plant.now_s, end_s, number))
        sent += int((times_s < end_s).sum())
        plant.run(times_s, end_s)
        plant.check()
        assert plant.tally(Tally.REQUESTS) == sent
        assert plant.tables.batch_size.max() <= server.max_batch
        limit = plant.tables.numbers[Number.MAX_WAITING]
        queues = plant.tables.waiting[-1:] if routing is Routing.CENTRAL else plant.tables.waiting
        assert limit == NONE or (queues <= limit).all()
