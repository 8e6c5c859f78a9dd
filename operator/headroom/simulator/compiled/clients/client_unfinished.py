"""Compiled: accounts for requests whose clients still wait."""

from __future__ import annotations

from headroom.simulator.compiled.clients.client_ends import count_late
from headroom.simulator.compiled.clients.client_layout import Phase
from headroom.simulator.compiled.clients.client_state import ClientState
from headroom.simulator.compiled.clients.client_tries import sum_wanted
from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.plant_state import PlantState


@compiled
def ages_s(c: ClientState, now_s: float) -> float:
    """Return the summed age of the requests that have not ended, and sum their integral to now."""
    sum_wanted(c, now_s)
    total = 0.0
    for request in range(len(c.phase)):
        if c.phase[request] >= Phase.UNSENT:
            total += now_s - c.wanted_s[request]
    return total


@compiled
def miss_the_rest(p: PlantState, c: ClientState) -> None:
    """Count the requests that have not ended as missed in their minute; they stay."""
    for request in range(len(c.phase)):
        if c.phase[request] >= Phase.UNSENT:
            count_late(p, c.wanted_s[request])
