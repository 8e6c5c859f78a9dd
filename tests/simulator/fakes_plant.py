"""Plants without a fleet, run by hand, and the theory that they are held against."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.clients import Clients
from headroom.simulator.compiled import kernel, unfinished
from headroom.simulator.compiled.clients import client_unfinished
from headroom.simulator.compiled.clients.client_layout import Amount, Count, Phase
from headroom.simulator.compiled.clients.client_state import ClientState
from headroom.simulator.compiled.plant_allocation import with_rows
from headroom.simulator.compiled.plant_layout import NONE, Column, Number, Quantity, Tally
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.plant import Network, Server, ServiceSpec, Spread
from headroom.simulator.scores import fine_quantile
from headroom.simulator.service_plant import ServicePlant

Times = NDArray[np.float64]
SERVERS = st.builds(
    Server,
    fixed_s=st.floats(0.05, 0.5),
    per_item_s=st.floats(0.0, 0.2),
    max_batch=st.integers(1, 5),
    slots=st.integers(1, 3),
    cv=st.sampled_from([0.0, 0.7]),
)
"""Servers that properties are tried with."""


def poisson(rate_rps: float, requests: int, seed: int = 1) -> Times:
    """Arrival times of a Poisson stream, given that its rate came out as it should."""
    gaps = np.random.Generator(np.random.PCG64(seed)).standard_exponential(requests)
    times_s: Times = np.cumsum(gaps) * (requests / gaps.sum() / rate_rps)
    return times_s


def exponential(mean_s: float, slots: int = 1) -> Server:
    """A server of exponential service times."""
    return Server(fixed_s=mean_s, per_item_s=0.0, slots=slots, cv=1.0, spread=Spread.GAMMA)


def service(
    server: Server,
    *,
    routing: Routing = Routing.RANDOM,
    cap: int | None = None,
    connections: int = 64,
    clients: Clients | None = None,
    target_s: float = 1e6,
) -> ServiceSpec:
    """One service whose promise is kept by everything that is answered, unless it says else."""
    return ServiceSpec(
        name="service",
        policy=Policy(latency_target_s=target_s),
        server=server,
        network=Network(routing=routing, in_flight_cap=cap, connections=connections),
        clients=clients or Clients(),
    )


@dataclass(frozen=True, slots=True)
class Execution:
    """One batch as it began: who is in it, by time of arrival."""

    row: int
    began_s: float
    arrived_s: tuple[float, ...]


@dataclass
class Plant:
    """The compiled plant of one service; rows 0..replicas-1 ready from time zero."""

    spec: ServiceSpec
    replicas: int = 1
    seed: int = 1
    duration_s: float = 3600.0
    now_s: float = 0.0
    _plant: ServicePlant = field(init=False)

    def __post_init__(self) -> None:
        self._plant = ServicePlant.with_replicas(
            self.spec, self.seed, self.duration_s, self.replicas
        )

    @property
    def tables(self) -> PlantState:
        return self._plant.tables

    @property
    def clients(self) -> ClientState | None:
        return self._plant.clients

    def run(self, times_s: Times | list[float], until_s: float = math.inf) -> Plant:
        """Take in these arrivals and run until then, or until everything has ended."""
        self._plant.advance(np.asarray(times_s, dtype=np.float64), 0, until_s)
        if self.clients is None:
            last_s = float(self.tables.touched_s.max())
        else:
            last_s = float(self.clients.amounts[Amount.NOW_S])
        # requests that nothing can serve may wait on: the last event may be long past
        self.now_s = until_s if math.isfinite(until_s) else max(self.now_s, last_s)
        return self

    def batches(self, times_s: list[float]) -> list[Execution]:
        """Run to the end, event by event; return the batches in the order in which they began."""
        seen: dict[tuple[int, float], Execution] = {}

        def step(arrivals: list[float], until_s: float) -> None:
            self.run(arrivals, until_s)
            for one in self.executions():
                seen.setdefault((one.row, one.began_s), one)

        for time_s in [*times_s, math.inf]:
            while self.tables.numbers[Number.HEAP] and self.tables.heap_s[0] <= time_s:
                step([], float(self.tables.heap_s[0]))
            if math.isfinite(time_s):
                step([time_s], math.nextafter(time_s, math.inf))
        return list(seen.values())

    def settle(self) -> Plant:
        """Bring integrals and gauges to now."""
        kernel.settle(self.tables, self.now_s)
        return self

    def grow(self, rows: int) -> None:
        """Make room for more replicas."""
        self._plant.tables = with_rows(self.tables, rows)

    def tally(self, which: Tally) -> int:
        return int(self.tables.tally[which])

    def counter(self, row: int, column: Column) -> float:
        return float(self.tables.counters[row, column])

    def count(self, which: Count) -> int:
        assert self.clients is not None
        return int(self.clients.counts[which])

    @property
    def rows(self) -> int:
        """Replicas that there is room for; also the row of the central queue."""
        return self._plant.rows

    @property
    def in_flight(self) -> int:
        return self._plant.in_flight

    @property
    def ended(self) -> int:
        return int(self.tables.tally[Tally.WITHIN :].sum())

    @property
    def mean_s(self) -> float:
        """Mean time in the system of all requests that have ended."""
        return float(self.tables.quantities[Quantity.SOJOURN_S]) / self.ended

    @property
    def attainment(self) -> float:
        return self.tally(Tally.WITHIN) / self.tally(Tally.REQUESTS)

    def quantile_s(self, ratio: float) -> float:
        return fine_quantile(self.tables.latency, 0, ratio)

    @property
    def little_error(self) -> float:
        """|L T - summed times in the system| over the former."""
        self.settle()
        integral_s = float(self.tables.quantities[Quantity.IN_SYSTEM_S])
        summed_s = float(self.tables.quantities[Quantity.SOJOURN_S])
        summed_s += unfinished.ages_s(self.tables, self.now_s)
        return abs(integral_s - summed_s) / integral_s if integral_s else abs(summed_s)

    def check(self) -> None:
        """Raise AssertionError where the tables contradict themselves: requests, lists, heap."""
        p = self.settle().tables
        if self.clients is None:
            assert self.tally(Tally.REQUESTS) == self.ended + self.in_flight
        else:
            self._check_clients(self.clients)
        for numbers in (p.tally, p.waiting, p.in_flight, p.busy_slots, p.counters, p.latency):
            assert (numbers >= 0).all()
        assert self.little_error < 1e-9
        lists = [list(self._list(int(p.head[r]), int(p.waiting[r]))) for r in range(len(p.head))]
        running = [node for one in self._running() for node in one]
        held = [node for nodes in lists for node in nodes] + running
        free = list(self._list(int(p.numbers[Number.FREE])))
        assert sorted(held + free) == list(range(len(p.arrived_s))), "a node is in one list, once"
        assert len(held) == self.in_flight
        for row, nodes in enumerate(lists):
            began_s = [t for one in self.executions() if one.row == row for t in one.arrived_s]
            arrived_s = [max(began_s, default=0.0), *(float(p.arrived_s[node]) for node in nodes)]
            assert arrived_s == sorted(arrived_s), "a queue is in order of arrival, what runs first"
            assert not nodes or row == self.rows or p.busy_slots[row] == p.numbers[Number.SLOTS]
        count = int(p.numbers[Number.HEAP])
        assert count == len(self._running()) == p.busy_slots.sum()
        assert all(p.heap_s[(place - 1) // 2] <= p.heap_s[place] for place in range(1, count))

    def _check_clients(self, c: ClientState) -> None:
        """Raise AssertionError where requests, their tries and connections contradict another."""
        p = self.tables
        phases = [Phase(value) for value in c.phase]
        waiting = [r for r, phase in enumerate(phases) if phase >= Phase.UNSENT]
        assert self.tally(Tally.REQUESTS) == self.ended + len(waiting), "each ends exactly once"
        assert len(waiting) == self.count(Count.OPEN)
        sent = {r: int(c.node[r]) for r, phase in enumerate(phases) if phase is Phase.SENT}
        owned = {int(p.owner[node]): node for node in sent.values()}
        assert owned == sent, "a try and its request know each other"
        assert (p.owner != NONE).sum() == len(sent), "what was given up has no owner"
        assert phases.count(Phase.UNSENT) == self.count(Count.UNSENT)
        sleeping = phases.count(Phase.THINKING) + phases.count(Phase.BACKING_OFF)
        assert sleeping == self.count(Count.WAKES)
        assert len(sent) == self.count(Count.USED)
        limit, free = self.count(Count.CONNECTIONS), self.count(Count.FREE)
        assert limit == NONE or len(sent) <= limit
        assert limit == NONE or not self.count(Count.UNSENT) or len(sent) == limit
        if self.count(Count.KEPT):
            held = [int(c.connection[r]) for r in sent]
            idle = c.idle[: self.count(Count.IDLE)].tolist()
            closed = c.closed[: self.count(Count.CLOSED)].tolist()
            assert sorted([*held, *idle, *closed]) == list(range(limit))
        spare = []
        while free != NONE:
            spare.append(free)
            free = int(c.following[free])
        others = [r for r, phase in enumerate(phases) if phase is Phase.NOTHING]
        assert sorted(spare) == [r for r in others if r >= self.count(Count.MOST_USERS)]
        summed_s = client_unfinished.ages_s(c, self.now_s) + float(c.amounts[Amount.LATENCY_S])
        assert math.isclose(summed_s, c.amounts[Amount.WANTED_S], rel_tol=1e-9, abs_tol=1e-9)

    def executions(self) -> list[Execution]:
        """Return the present execution of every slot."""
        p, found = self.tables, []
        for row, slot in np.argwhere(p.batch_head != NONE):
            arrived_s = tuple(
                float(p.arrived_s[n]) for n in self._list(int(p.batch_head[row, slot]))
            )
            assert len(arrived_s) == p.batch_size[row, slot]
            found.append(Execution(int(row), float(p.batch_began_s[row, slot]), arrived_s))
        return found

    def _running(self) -> list[list[int]]:
        heads = self.tables.batch_head
        return [list(self._list(int(head))) for head in heads[heads != NONE]]

    def _list(self, node: int, count: int | None = None) -> Iterator[int]:
        while node != NONE and count != 0:
            yield node
            node = int(self.tables.following[node])
            count = None if count is None else count - 1


ALONE = Server(fixed_s=0.300, per_item_s=0.0, cv=1.0)
