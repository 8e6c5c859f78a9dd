"""The compiled plant of one service: its requests, its clients, and a row for each replica.

The plant's arrays have a fixed size while the kernel runs. Where one is full the kernel stops, and
`advance` enlarges it and goes on.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from headroom.simulator.compiled import kernel, replica_rows
from headroom.simulator.compiled.clients import client_kernel
from headroom.simulator.compiled.clients.client_layout import Count
from headroom.simulator.compiled.clients.client_state import allocate_clients, enlarged
from headroom.simulator.compiled.plant_allocation import allocate, with_more_nodes, with_rows
from headroom.simulator.compiled.plant_layout import Quantity, Tally
from headroom.simulator.plant import ServiceSpec

_FIRST_ROWS = 8


class ServicePlant:
    """One service's plant, which begins without replicas."""

    def __init__(self, spec: ServiceSpec, seed: int, duration_s: float) -> None:
        self.tables = allocate(spec, seed, duration_s)
        self.clients = allocate_clients(spec, seed)
        """None: every request is sent when it arrives, and once."""
        self._free_rows: list[int] = []

    @classmethod
    def with_replicas(cls, spec: ServiceSpec, seed: int, duration_s: float, replicas: int) -> Self:
        """Return a plant with this many replicas, ready from time zero, in the first rows."""
        plant = cls(spec, seed, duration_s)
        plant._grow(replicas)
        for _ in range(replicas):
            plant.admit(0.0)
        return plant

    def advance(self, times_s: np.ndarray, index: int, until_s: float) -> int:
        """Run until then; return the index of the first arrival not admitted."""
        while self.clients is not None:
            index = client_kernel.advance(self.tables, self.clients, times_s, index, until_s)
            if not self.clients.counts[Count.STALLED]:
                return index
            self.tables, self.clients = enlarged(self.tables, self.clients)
        while True:
            index = kernel.advance(self.tables, times_s, index, until_s)
            waiting = index < len(times_s) and times_s[index] < until_s
            if not waiting:
                return index
            self.tables = with_more_nodes(self.tables)

    def end_load(self) -> None:
        """Let clients begin no further request."""
        if self.clients is not None:
            client_kernel.dismiss(self.clients)

    def admit(self, now_s: float) -> int:
        """Let another replica take requests; return its row."""
        if not self._free_rows:
            self._grow(max(_FIRST_ROWS, 2 * self.rows))
        row = self._free_rows.pop()
        replica_rows.admit(self.tables, row, now_s)
        return row

    def close(self, row: int) -> None:
        """Send a replica no further request; those in flight there go on."""
        replica_rows.close(self.tables, row)

    def kill(self, row: int, now_s: float) -> None:
        """End a replica with its requests in flight, which fail."""
        replica_rows.kill(self.tables, row, now_s)

    def release(self, row: int) -> None:
        """Give the row of a replica that has ended to a later one."""
        self._free_rows.append(row)

    def slow(self, row: int, factor: float) -> None:
        """Set the factor of the time of all later executions of a replica."""
        self.tables.slowness[row] = factor

    def make_costly(self, factor: float) -> None:
        """Multiply the time of all later executions."""
        self.tables.quantities[Quantity.COST_FACTOR] *= factor

    def is_idle(self, row: int) -> bool:
        """Return whether a replica has no request in flight."""
        return bool(self.tables.in_flight[row] == 0)

    @property
    def rows(self) -> int:
        """Replicas that there is room for; also the row of the central queue."""
        return len(self.tables.head) - 1

    @property
    def in_flight(self) -> int:
        """All requests in the system."""
        return int(self.tables.in_flight.sum())

    @property
    def unsent(self) -> int:
        """Requests that clients want to send and have no connection for."""
        return 0 if self.clients is None else int(self.clients.counts[Count.UNSENT])

    @property
    def sent(self) -> int:
        """Tries that clients have sent, retries included."""
        if self.clients is None:
            return int(self.tables.tally[Tally.REQUESTS])
        return int(self.clients.counts[Count.TRIES])

    def _grow(self, rows: int) -> None:
        """Make room for this many replicas; the lowest rows are given first."""
        self._free_rows = [*range(rows - 1, self.rows - 1, -1), *self._free_rows]
        self.tables = with_rows(self.tables, rows)
