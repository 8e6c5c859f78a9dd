"""Reports of one replica in turn add at most one; without contradictions no state changes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from headroom.scaling import (
    PodSample,
    Routing,
)
from scaling.windows.contradicted_fleet import (
    COST,
    Fleet,
    Lie,
    claiming,
    late,
    scaled,
    seconds,
    silent,
)
from support.fakes_scaling import Service

History = list[tuple[int, Lie | None]]
"""For how many ticks which lie."""

HISTORIES: dict[str, tuple[float, int, Routing, History]] = {
    "counters that fall to half, after a page that is missing": (
        *(12.2, 2, Routing.RANDOM),
        [(12, None), (1, silent()), (8, scaled(0.5))],
    ),
    "executions in ms, then none, then those of all the time": (
        *(19.8, 3, Routing.STICKY),
        [(1, None), (4, seconds(1e-3)), (4, silent()), (12, None)],
    ),
    "twice the time of each batch": (
        *(11.2, 2, Routing.STICKY),
        [(9, None), (40, seconds(2.0))],
    ),
    "a cost of 19 minutes before ten batches": (
        *(0.76, 2, Routing.STICKY),
        [(8, silent()), (12, claiming(7000.0))],
    ),
    "a cost of 19 minutes before any batch": (
        *(0.3, 2, Routing.STICKY),
        [(20, claiming(7000.0))],
    ),
    "parts of the cost swapped": (
        *(14.7, 2, Routing.ROUND_ROBIN),
        [(20, lambda true: replace(true, cost=replace(COST, fixed_s=0.06, per_item_s=0.15)))],
    ),
    "late answers alone": (
        *(21.4, 3, Routing.RANDOM),
        [(9, None), (60, late()), (60, None)],
    ),
    "late answers alone from the first page on": (
        *(21.4, 3, Routing.RANDOM),
        [(90, late()), (60, None)],
    ),
    "silence after the first pages": (
        *(14.4, 2, Routing.STICKY),
        [(3, None), (70, silent())],
    ),
}
"""Requests per second, replicas, their routing, and what one of them does."""


@pytest.mark.parametrize("history", HISTORIES)
def test_reports_of_one_replica_over_time_add_at_most_one(history: str) -> None:
    rate_rps, replicas, routing, steps = HISTORIES[history]
    fleet = Fleet(rate_rps, replicas, routing)
    decisions = [decision for ticks, lie in steps for decision in fleet.run(ticks, lie)]
    assert max(one.replicas for one in decisions) <= replicas + 1


def test_fleet_without_contradictions_changes_no_state() -> None:
    fleet = Fleet()
    fleet.run(40)
    before = fleet.state.contradictions
    fleet.run(1)
    assert fleet.state.contradictions is before
    assert before.found == {}


class TwoProcesses(Service):
    """Behind each port answer two processes in turn, with pages of their own: 60 and 40 %."""

    def samples(self) -> tuple[PodSample, ...]:
        turn = int(self.now_s / self.tick_s)
        return tuple(
            _part(one, 0.6 if (turn // 3 + number) % 2 else 0.4)
            for number, one in enumerate(super().samples())
        )


def _part(one: PodSample, share: float) -> PodSample:
    counts = tuple(math.floor(share * count) for count in one.latency.counts)
    latency = replace(one.latency, counts=counts)
    return replace(one, arrivals=math.floor(share * one.arrivals), latency=latency)


def test_two_processes_behind_one_port_are_no_burst_of_requests() -> None:
    service = TwoProcesses(rate_rps=20.0, replicas=3)
    service.run(600)
    assert {decision.replicas for decision in service.decisions} == {3}
