"""The simulated replica and the model server make the same batches, and count on the same grid."""

from __future__ import annotations

import math
from itertools import accumulate

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headroom.simulator.clients import Clients
from headroom.simulator.compiled.plant_layout import BOUNDS_S, Tally
from headroom.simulator.plant import Server
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.entries import QueueEntry
from headroom_server.telemetry.histograms import LATENCY_BOUNDS_S, Histogram
from simulator.fakes_plant import Plant, service


def served(
    arrivals_s: list[float], server: Server, deadline_s: float | None
) -> tuple[list[tuple[float, tuple[float, ...]]], int]:
    """Drive the model server's batcher on a virtual clock; return its batches and what expired.

    One device asks for a batch whenever it is free; what ends at an instant precedes what arrives.
    """
    batcher: Batcher[None] = Batcher(server.max_batch)
    batches, expired, free_s = [], 0, 0.0

    def take(now_s: float) -> float:
        nonlocal expired
        sealed = batcher.seal(now_s)
        expired += len(sealed.expired)
        if not sealed.batch:
            return now_s
        batches.append((now_s, tuple(entry.arrived_s for entry in sealed.batch)))
        return now_s + server.execution_s(sealed.items)

    for key, time_s in enumerate([*arrivals_s, math.inf]):
        while len(batcher) and free_s <= time_s:
            free_s = take(free_s)
        if math.isfinite(time_s):
            due_s = None if deadline_s is None else time_s + deadline_s
            batcher.add(QueueEntry(key, 1, time_s, due_s, None))
            free_s = max(free_s, time_s)
            if free_s == time_s:
                free_s = take(time_s)
    return batches, expired


@settings(max_examples=40)
@given(
    gaps_s=st.lists(st.floats(0.0001, 0.3), max_size=60),
    max_batch=st.integers(1, 9),
    fixed_s=st.floats(0.001, 0.4),
    per_item_s=st.floats(0.0, 0.05),
    deadline_s=st.none() | st.floats(0.0123, 1.0),
)
def test_same_arrivals_and_costs_give_the_same_batches(
    gaps_s: list[float],
    max_batch: int,
    fixed_s: float,
    per_item_s: float,
    deadline_s: float | None,
) -> None:
    server = Server(fixed_s=fixed_s, per_item_s=per_item_s, max_batch=max_batch)
    arrivals_s = list(accumulate(gaps_s))
    plant = Plant(service(server, clients=Clients(deadline_s=deadline_s)))
    simulated = [(one.began_s, one.arrived_s) for one in plant.batches(arrivals_s)]
    expected, expired = served(arrivals_s, server, deadline_s)
    if deadline_s is not None:  # at a tie of completion and deadline, rounding decides
        assume(served(arrivals_s, server, deadline_s - 1e-9) == (expected, expired))
        assume(served(arrivals_s, server, deadline_s + 1e-9) == (expected, expired))
    assert simulated == expected
    assert plant.tally(Tally.EXPIRED) == expired
    assert plant.tally(Tally.WITHIN) == len(arrivals_s) - expired


def test_batches_by_hand() -> None:
    # 1 s + 0.1 s per request, at most 3: alone at 0; three of the four that came, at 1.1; the last
    server = Server(fixed_s=1.0, per_item_s=0.1, max_batch=3)
    arrivals_s = [0.0, 0.2, 0.4, 0.6, 0.8]
    batches = [(0.0, (0.0,)), (1.1, (0.2, 0.4, 0.6)), (1.1 + 1.3, (0.8,))]
    assert served(arrivals_s, server, None) == (batches, 0)
    plant = Plant(service(server))
    assert [(one.began_s, one.arrived_s) for one in plant.batches(arrivals_s)] == batches


def test_latencies_are_counted_on_the_model_server_s_grid() -> None:
    assert [*Histogram(LATENCY_BOUNDS_S).bounds, math.inf] == list(BOUNDS_S)
