"""The state of one service's compiled plant: arrays with named rows.

Requests in flight are nodes of linked lists in one pool, so memory follows the requests in flight
and not the length of the trace. Row `r` of the tables is one replica; the last row is the central
queue of `Routing.CENTRAL`. Ends of executions are in a binary heap of at most rows x slots entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.compiled.plant_layout import Floats, Ints


class PlantState(NamedTuple):
    """The state of one service's plant; shapes in terms of rows, slots, nodes."""

    numbers: Ints
    quantities: Floats
    tally: Ints
    random: NDArray[np.uint64]
    arrived_s: Floats
    """[nodes] When the request of a node arrived."""
    following: Ints
    """[nodes] The next node of the same list."""
    owner: Ints
    """[nodes] With clients: the request whose try this is; NONE once its client has given up."""
    mark: Ints
    """[nodes] With clients: 1 if it says that it is a retry. Once it has ended: how, a tally or
    ANSWERED, and `arrived_s` says when."""
    head: Ints
    """[rows] First waiting node."""
    tail: Ints
    waiting: Ints
    """[rows] Length of the list."""
    in_flight: Ints
    """[rows] Waiting and running."""
    batch_head: Ints
    """[rows, slots] First node of the execution; NONE while the slot is free."""
    batch_size: Ints
    batch_began_s: Floats
    busy_slots: Ints
    """[rows]"""
    slowness: Floats
    """[rows] Factor on every execution."""
    touched_s: Floats
    """[rows] Until when the integrals are summed."""
    routable: Ints
    """[rows] The first numbers[READY] are the rows that take requests."""
    open: Ints
    """[rows] 1 while the row is routable."""
    bound: Ints
    """[connections] The row of each keep-alive connection."""
    heap_s: Floats
    """[rows x slots] When an execution ends; a binary heap."""
    heap_place: Ints
    """[rows x slots] row x slots + slot."""
    counters: Floats
    """[rows, columns + buckets] What a scrape returns."""
    bounds_s: Floats
    """[buckets] The latency grid; the last is inf."""
    minute_requests: Ints
    """[minutes] By time of arrival."""
    minute_missed: Ints
    latency: Ints
    """[fine buckets] Answered requests over the run: factor 1.02 from 0.1 ms."""
    recent: Ints
    """[fine buckets + 1] As latency, since the last sample; the last counts unanswered requests."""
