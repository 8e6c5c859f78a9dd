"""Plants whose clients are written down, for tests."""

from __future__ import annotations

from headroom.scaling.values.policy import Routing
from headroom.simulator.clients import Clients
from headroom.simulator.compiled.plant_layout import Column
from headroom.simulator.plant import Server
from simulator.fakes_plant import Plant, service

SECOND = Server(fixed_s=1.0, per_item_s=0.0)
"""One request a second."""


def plant(
    clients: Clients,
    replicas: int = 1,
    *,
    server: Server = SECOND,
    routing: Routing = Routing.ROUND_ROBIN,
    target_s: float = 1e6,
    seed: int = 1,
) -> Plant:
    one = service(server, routing=routing, clients=clients, target_s=target_s)
    return Plant(one, replicas, seed=seed)


def arrivals(one: Plant) -> list[int]:
    """Tries that reached each replica."""
    return [int(one.counter(row, Column.ARRIVALS)) for row in range(one.rows)]
