"""Any clients in any sequence of events: every request ends once, and Little's law holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling.values.policy import Routing
from headroom.simulator.clients import Clients
from headroom.simulator.compiled import replica_rows
from headroom.simulator.compiled.clients import client_kernel
from headroom.simulator.compiled.clients.client_layout import Count
from headroom.simulator.compiled.plant_layout import NONE, Tally
from headroom.simulator.plant import Server
from simulator.fakes_plant import SERVERS
from simulator.plants_of_clients import plant

CLIENTS = st.builds(
    Clients,
    timeout_s=st.none() | st.floats(0.2, 5.0),
    deadline_s=st.none() | st.floats(0.2, 5.0),
    max_waiting=st.none() | st.integers(0, 6),
    connections=st.integers(1, 12),
    connection_requests=st.none() | st.integers(1, 4),
    connection_idle_s=st.none() | st.floats(0.01, 2.0),
    users=st.none() | st.integers(0, 9) | st.just(((0.0, 3), (2.0, 9), (6.0, 1))),
    retries=st.integers(0, 3),
    backoff_s=st.sampled_from([0.0, 0.1, 1.0]),
    retries_marked=st.booleans(),
)


@settings(max_examples=60)
@given(
    clients=CLIENTS,
    bounded=st.booleans(),
    think_s=st.floats(0.05, 2.0),
    server=SERVERS,
    routing=st.sampled_from(list(Routing)),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["pass", "pass", "open", "close", "kill"]),
            st.integers(0, 30),
            st.floats(0.0, 2.0),
        ),
        max_size=12,
    ),
    seed=st.integers(0, 2**32),
)
def test_any_sequence_ends_every_request_once_and_keeps_littles_law(
    clients: Clients,
    bounded: bool,
    think_s: float,
    server: Server,
    routing: Routing,
    steps: list[tuple[str, int, float]],
    seed: int,
) -> None:
    if clients.users is not None:
        clients = replace(clients, think_s=think_s)
        if not bounded:
            clients = replace(clients, connections=None)
    one = plant(clients, 3, server=server, routing=routing, target_s=1.0, seed=seed)
    chance = np.random.default_rng(seed)
    for action, number, seconds in steps:
        p, row = one.tables, number % one.rows
        if action == "open" and not p.open[row] and p.in_flight[row] == 0:
            replica_rows.admit(p, row, one.now_s)
        elif action == "close":
            replica_rows.close(p, row)
        elif action == "kill":
            replica_rows.kill(p, row, one.now_s)
        end_s = one.now_s + seconds
        wishes = 0 if clients.users is not None else number
        one.run(np.sort(chance.uniform(one.now_s, end_s, wishes)), end_s)
        one.check()
        given_up = (p.batch_head != NONE).any() and clients.timeout_s is not None
        if clients.connections is not None and not given_up:
            assert one.in_flight <= clients.connections
        first = one.count(Count.TRIES) - one.count(Count.RETRIED)
        assert first <= one.tally(Tally.REQUESTS)
    if one.clients is not None:
        client_kernel.dismiss(one.clients)
    one.run([])
    one.check()
    if routing is Routing.CENTRAL and not one.tables.open.any():
        # a queue in front holds its requests until a replica is there again
        assert one.tally(Tally.REQUESTS) == one.ended + one.count(Count.OPEN)
        replica_rows.admit(one.tables, 0, one.now_s)
        one.run([])
        one.check()
    assert one.tally(Tally.REQUESTS) == one.ended
