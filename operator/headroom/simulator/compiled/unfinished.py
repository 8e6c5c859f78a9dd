"""Compiled: accounts for requests that are still in the plant."""

from __future__ import annotations

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.plant_layout import NONE, Number
from headroom.simulator.compiled.plant_state import PlantState


@compiled
def ages_s(p: PlantState, now_s: float) -> float:
    """Return the summed age of the requests still in the system."""
    total = 0.0
    for row in range(len(p.head)):
        node = p.head[row]
        for _ in range(p.waiting[row]):
            total += now_s - p.arrived_s[node]
            node = p.following[node]
        for slot in range(p.numbers[Number.SLOTS]):
            node = p.batch_head[row, slot]
            while node != NONE:
                total += now_s - p.arrived_s[node]
                node = p.following[node]
    return total


@compiled
def miss_the_rest(p: PlantState) -> None:
    """Count unfinished requests as missed in their minute of arrival; they stay in the system."""
    last = len(p.minute_missed) - 1
    for row in range(len(p.head)):
        node = p.head[row]
        for _ in range(p.waiting[row]):
            p.minute_missed[min(int(p.arrived_s[node] / 60.0), last)] += 1
            node = p.following[node]
        for slot in range(p.numbers[Number.SLOTS]):
            node = p.batch_head[row, slot]
            while node != NONE:
                p.minute_missed[min(int(p.arrived_s[node] / 60.0), last)] += 1
                node = p.following[node]
