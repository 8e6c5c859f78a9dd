"""Compiled: the end of a request of the plant, answered or not."""

from __future__ import annotations

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.plant_layout import ANSWERED, NONE, Column, Number, Quantity, Tally
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.plant_telemetry import bucket_of, count_latency

_COLUMNS = len(Column)


@compiled
def release(p: PlantState, node: int) -> None:
    """Return a node to the pool."""
    p.following[node] = p.numbers[Number.FREE]
    p.numbers[Number.FREE] = node


@compiled
def tell(p: PlantState, node: int, now_s: float, outcome: int) -> None:
    """End a try, and notify its client if it still waits."""
    p.quantities[Quantity.SOJOURN_S] += now_s - p.arrived_s[node]
    if p.owner[node] == NONE:
        release(p, node)
        return
    p.arrived_s[node] = now_s
    p.mark[node] = outcome
    p.following[node] = p.numbers[Number.ENDED]
    p.numbers[Number.ENDED] = node


@compiled
def end_unanswered(p: PlantState, node: int, now_s: float, outcome: int) -> None:
    """End a request that gets no answer."""
    if p.numbers[Number.CLIENTS] == 1:
        tell(p, node, now_s, outcome)
        return
    arrived_s = p.arrived_s[node]
    p.tally[outcome] += 1
    p.minute_missed[min(int(arrived_s / 60.0), len(p.minute_missed) - 1)] += 1
    p.recent[len(p.recent) - 1] += 1
    p.quantities[Quantity.SOJOURN_S] += now_s - arrived_s
    release(p, node)


@compiled
def end_answered(p: PlantState, row: int, node: int, now_s: float) -> None:
    """End a request with its answer."""
    latency_s = now_s - p.arrived_s[node]
    clients = p.numbers[Number.CLIENTS] == 1
    gone = p.owner[node] == NONE if clients else latency_s > p.quantities[Quantity.TIMEOUT_S]
    if gone:
        p.counters[row, Column.CANCELLED] += 1
        end_unanswered(p, node, now_s, Tally.CANCELLED)
        return
    p.counters[row, Column.ANSWERED] += 1
    p.counters[row, _COLUMNS + bucket_of(p.bounds_s, latency_s)] += 1
    if clients:
        tell(p, node, now_s, ANSWERED)
        return
    count_latency(p, latency_s)
    if latency_s <= p.quantities[Quantity.TARGET_S]:
        p.tally[Tally.WITHIN] += 1
    else:
        p.tally[Tally.LATE] += 1
        arrived_s = p.arrived_s[node]
        p.minute_missed[min(int(arrived_s / 60.0), len(p.minute_missed) - 1)] += 1
    p.quantities[Quantity.SOJOURN_S] += latency_s
    release(p, node)
