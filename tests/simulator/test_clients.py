"""Clients by hand, in theory and at random: connections, users, patience and retries."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from headroom.scaling.values.policy import Routing
from headroom.simulator.clients import Clients
from headroom.simulator.compiled import replica_rows
from headroom.simulator.compiled.clients.client_layout import Count
from headroom.simulator.compiled.plant_layout import Column, Quantity, Tally
from headroom.simulator.plant import Server
from simulator.fakes_plant import exponential, poisson
from simulator.plants_of_clients import SECOND, arrivals, plant


def test_latency_counts_from_the_wanted_time_and_servers_see_only_what_is_sent() -> None:
    # four requests wanted at 0 over two connections: answers at 1, 2, 3, 4 s; the server never has
    # over two
    one = plant(Clients(connections=2), target_s=2.5).run([0.0] * 4, 0.5)
    one.settle()
    assert (one.in_flight, one.count(Count.UNSENT)) == (2, 2)
    assert (one.tally(Tally.REQUESTS), arrivals(one)) == (4, [2])
    one.run([])
    one.check()
    assert (one.tally(Tally.WITHIN), one.tally(Tally.LATE)) == (2, 2)
    # at the server: 1 s, then 2 s three times, for each waits for one ahead of it
    assert float(one.tables.quantities[Quantity.SOJOURN_S]) == pytest.approx(7.0)
    assert one.quantile_s(1.0) == pytest.approx(4.0, rel=0.011)


def test_saturated_connections_hide_demand_from_the_server() -> None:
    """Five a second want to, one a second is served: that is what its arrivals say."""
    one = plant(Clients(connections=8)).run([0.2 * at for at in range(500)], 100.0)
    one.settle()
    assert one.tally(Tally.REQUESTS) == 500
    assert arrivals(one) == [108]
    assert one.counter(0, Column.WAITING) + one.counter(0, Column.RUNNING) == 8


@pytest.mark.parametrize("server", [exponential(0.1), Server(fixed_s=0.05, per_item_s=0.05)])
def test_saturated_connection_limited_loop_has_the_throughput_of_the_plant(server: Server) -> None:
    one = plant(Clients(connections=16), 2, server=server, routing=Routing.LEAST_IN_FLIGHT)
    one.run(poisson(3 * 2 * server.full_rps, 40_000), 1_700.0)
    assert one.ended / 1_700.0 == pytest.approx(2 * server.full_rps, rel=0.02)


def test_connection_stays_with_its_replica_until_it_closes() -> None:
    one = plant(Clients(connections=4), 3, routing=Routing.STICKY)
    one.run([2.0 * at for at in range(10)], 100.0)
    (first,) = (row for row in range(3) if arrivals(one)[row])
    assert arrivals(one)[first] == 10, "one request at a time needs one connection"
    replica_rows.close(one.tables, first)
    one.run([100.0 + 2.0 * at for at in range(10)], 200.0)
    assert sorted(arrivals(one)) == [0, 10, 10]
    one.check()


def test_connections_that_were_opened_keep_new_replicas_idle() -> None:
    one = plant(Clients(connections=8), routing=Routing.STICKY).run([0.0] * 8, 100.0)
    one.grow(4)
    for row in (1, 2, 3):
        replica_rows.admit(one.tables, row, one.now_s)
    one.run([100.0 + at / 4 for at in range(400)])
    assert arrivals(one) == [408, 0, 0, 0]


@pytest.mark.parametrize(
    "clients",
    [
        pytest.param(Clients(connections=8, connection_requests=5), id="after five requests"),
        pytest.param(Clients(connections=8, connection_idle_s=1.0), id="after a second idle"),
    ],
)
def test_connections_that_close_find_new_replicas(clients: Clients) -> None:
    one = plant(clients, routing=Routing.STICKY).run([0.0], 50.0)
    one.grow(4)
    for row in (1, 2, 3):
        replica_rows.admit(one.tables, row, one.now_s)
    one.run([100.0 + 2.5 * at for at in range(400)])
    one.check()
    assert min(arrivals(one)) > 60


def test_idle_connection_used_last_is_used_first() -> None:
    one = plant(Clients(connections=8), server=replace(SECOND, slots=8), routing=Routing.STICKY)
    one.run([0.0, 0.5, 0.6, 10.0, 11.5])
    assert one.clients is not None
    assert one.count(Count.IDLE) == 3
    assert one.clients.uses[one.clients.idle[2]] == 3
    assert one.clients.uses[one.clients.idle[:2]].tolist() == [1, 1]


def test_patience_ends_a_request_that_was_never_sent() -> None:
    # begun at 0 and 1; at 2.5 s the third, sent at 2, still runs, and the last was never sent
    one = plant(Clients(connections=1, timeout_s=2.5)).run([0.0] * 4)
    one.check()
    assert (one.tally(Tally.WITHIN), one.tally(Tally.CANCELLED)) == (2, 2)
    assert (arrivals(one), one.counter(0, Column.CANCELLED)) == ([3], 1)


def test_request_given_up_while_waiting_leaves_the_queue_at_once() -> None:
    slow = Server(fixed_s=100.0, per_item_s=0.0)
    one = plant(Clients(timeout_s=5.0, retries=1), server=slow).run([0.0, 1.0], 5.5)
    # the first runs on without a reader and is tried again; the second waits
    assert one.in_flight == 3
    one.run([], 6.5)
    assert one.counter(0, Column.CANCELLED) == 1
    one.check()


def test_request_counts_once_however_often_it_is_tried() -> None:
    one = plant(Clients(max_waiting=0, retries=3, backoff_s=0.0), target_s=1.0).run([0.0, 0.0])
    one.check()
    assert one.tally(Tally.REQUESTS) == 2
    assert (one.tally(Tally.WITHIN), one.tally(Tally.REFUSED)) == (1, 1)
    assert (one.count(Count.TRIES), one.count(Count.RETRIED)) == (5, 3)
    assert (arrivals(one), one.counter(0, Column.REFUSED)) == ([5], 4)


def test_answer_to_a_retry_is_late_even_within_the_target() -> None:
    one = plant(Clients(max_waiting=0, retries=9, backoff_s=0.3), target_s=1e4).run([0.0, 0.0])
    assert (one.tally(Tally.WITHIN), one.tally(Tally.LATE)) == (1, 1)
    assert int(one.tables.minute_missed.sum()) == 1


def test_backoff_doubles_with_jitter() -> None:
    """Between 0.5 and 1.5 times 1 + 2 + 4 + 8 s after the first try, 15 s on average."""
    ends_s = []
    for seed in range(200):
        one = plant(Clients(retries=4, backoff_s=1.0), seed=seed)
        replica_rows.kill(one.tables, 0, 0.0)
        ends_s.append(one.run([0.0]).now_s)
    assert 7.5 <= min(ends_s) <= max(ends_s) <= 22.5
    assert np.mean(ends_s) == pytest.approx(15.0, abs=0.6)
    assert np.std(ends_s) == pytest.approx(math.sqrt(85 / 12), abs=0.4)


@pytest.mark.parametrize("routing", [Routing.RANDOM, Routing.STICKY, Routing.CENTRAL])
@pytest.mark.parametrize("marked", [False, True])
def test_server_counts_retries_that_say_so(marked: bool, routing: Routing) -> None:
    clients = Clients(timeout_s=1.5, retries=2, retries_marked=marked)
    one = plant(clients, 2, routing=routing).run([0.0] * 12)
    one.check()
    replicas = range(one.rows + 1 if routing is Routing.CENTRAL else one.rows)
    seen = max(one.counter(row, Column.RETRIED) for row in replicas)
    assert (seen > 0) == marked
    if marked and routing is not Routing.CENTRAL:
        assert sum(one.counter(row, Column.RETRIED) for row in replicas) == one.count(Count.RETRIED)


def test_killed_replica_fails_tries_and_closes_their_connections() -> None:
    clients = Clients(connections=2, retries=1)
    one = plant(clients, 2, routing=Routing.STICKY).run([0.0, 0.0, 0.0], 0.5)
    replica_rows.kill(one.tables, 0, 0.5)
    replica_rows.kill(one.tables, 1, 0.5)
    replica_rows.admit(one.tables, 0, 0.5)
    one.run([])
    one.check()
    assert (one.tally(Tally.WITHIN), one.tally(Tally.LATE)) == (1, 2)


def test_scraping_the_servers_changes_nothing() -> None:
    clients = Clients(connections=6, timeout_s=1.7, deadline_s=1.1, retries=2, backoff_s=0.3)

    def run(look_every_s: float) -> list[int]:
        one = plant(clients, 2, server=replace(SECOND, cv=0.5), routing=Routing.RANDOM)
        times_s = poisson(4.0, 400)
        for end_s in np.arange(look_every_s, 200.0, look_every_s):
            now = times_s[(times_s >= end_s - look_every_s) & (times_s < end_s)]
            one.run(now, float(end_s)).settle()
        return [int(value) for value in one.run([]).tables.tally]

    assert run(200.0 / 7) == run(0.25)


def test_many_requests_beyond_the_tables_are_not_lost() -> None:
    one = plant(Clients(connections=5000)).run([0.0] * 10_000, 3.5)
    one.check()
    assert (one.in_flight, one.count(Count.UNSENT)) == (4_997 + 3, 10_000 - 5_003)
    assert len(one.clients.phase if one.clients else []) == 16_384


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"connections": 0}, "connections must be >= 1; got 0"),
        ({"connection_requests": 5}, "connection_requests needs connections or users"),
        ({"connections": 1, "connection_idle_s": 0.0}, "connection_idle_s must be > 0"),
        ({"think_s": 1.0}, "think_s needs users"),
        ({"users": 5, "think_s": -1.0}, "think_s must be >= 0"),
        ({"users": -1}, "users must be >= 0"),
        ({"users": ()}, "users must have at least one step"),
        ({"users": ((5.0, 1), (5.0, 2))}, "the times of users must be >= 0 and increase"),
        ({"retries": 101}, "retries must be >= 0 and <= 100; got 101"),
        ({"backoff_s": math.inf}, "backoff_s must be >= 0"),
    ],
)
def test_impossible_clients_are_refused(fields: dict[str, object], rule: str) -> None:
    with pytest.raises(ValueError, match=re.escape(rule)):
        Clients(**fields)  # type: ignore[arg-type]
