"""One random plant: server, target, cold start, routing and patience, at any speed. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from decision_study.family.draws import Draws
from decision_study.family.loads import STREAM
from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.plant import Network, Server, ServiceSpec, Spread

FASTEST_S, SLOWEST_S = 0.004, 1.2
"""Range of the time of a single request on an idle replica."""
WAITING_BATCHES = 8
"""The product's server refuses requests beyond eight full batches, by default."""
_ROUTINGS = (
    *(Routing.RANDOM,) * 3,
    *(Routing.STICKY,) * 3,
    *(Routing.LEAST_IN_FLIGHT,) * 3,
    Routing.CENTRAL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A server whose single request takes 1 s when idle, and what surrounds it."""

    server: Server
    target_ratio: float
    """Latency target over the time of a single request."""
    patience_ratio: float
    """Clients' timeout over the latency target."""
    cold_start: ColdStart
    routing: Routing
    connections: int

    @property
    def at_once(self) -> int:
        """Requests that one idle replica answers in time if they arrive together."""
        rounds = self.target_ratio / self.server.execution_s(self.server.max_batch)
        return max(1, math.floor(rounds)) * self.server.max_batch * self.server.slots

    @property
    def usual_rps(self) -> float:
        """About the rate that one replica can be given: 0.8 of its full throughput at most."""
        server = self.server
        if server.max_batch > 1:
            share = 0.75 - 0.1 * server.cv
        else:
            share = max(0.2, 1 - 1.5 * (1 + server.cv**2) / self.target_ratio)
        if self.routing is Routing.STICKY:
            share *= 0.7
        return min(0.8, share) * server.full_rps

    def spec(self, single_s: float, max_replicas: int) -> ServiceSpec:
        """Return the service with a single request of this many seconds.

        The cost must be learned, and all other settings are defaults.
        """
        server = replace(
            self.server,
            fixed_s=self.server.fixed_s * single_s,
            per_item_s=self.server.per_item_s * single_s,
        )
        target_s = self.target_ratio * single_s
        places = server.max_batch * server.slots
        return ServiceSpec(
            name=STREAM,
            policy=Policy(
                latency_target_s=target_s, max_replicas=max_replicas, routing=self.routing
            ),
            server=server,
            network=Network(routing=self.routing, connections=self.connections),
            clients=Clients(
                timeout_s=self.patience_ratio * target_s, max_waiting=WAITING_BATCHES * places
            ),
            cold_start=self.cold_start,
        )


def drawn(draws: Draws) -> Plant:
    """Return a random plant."""
    server = _batching(draws) if draws.between(0, 1) < 0.55 else _single(draws)
    floor = server.execution_s(server.max_batch) * (1.3 + server.cv)
    floor = max(floor, 2 + 3 * server.cv if server.max_batch == 1 else 1.5)
    return Plant(
        server=server,
        target_ratio=max(draws.scale(2, 12), floor),
        patience_ratio=draws.scale(3, 20),
        cold_start=ColdStart.of(draws.scale(10, 300), spread=draws.between(1.0, 1.5)),
        routing=draws.one_of(_ROUTINGS),
        connections=draws.one_of((64, 256)),
    )


def _batching(draws: Draws) -> Server:
    """Return a server that batches: the first request costs most, each further one a part."""
    share = draws.scale(0.02, 0.6)
    cv = draws.one_of((0.0, 0.0, draws.between(0, 1), draws.between(0, 2)))
    return Server(
        fixed_s=1 - share,
        per_item_s=share,
        max_batch=draws.one_of((2, 4, 8, 16, 32)),
        cv=cv,
        spread=draws.one_of(tuple(Spread)),
    )


def _single(draws: Draws) -> Server:
    """Return a server without batches, with one place or several."""
    return Server(
        fixed_s=1.0,
        per_item_s=0.0,
        slots=draws.one_of((1, 1, 1, 2, 8)),
        cv=draws.one_of((0.0, 0.3, draws.between(0, 1), draws.between(0, 2))),
        spread=draws.one_of(tuple(Spread)),
    )
