"""Detects demand that saturated replicas hide, and bounds it by the requests in flight.

A client that waits for its answers (a pool of connections, a synchronous caller) sends no more than
it gets back. Once the replicas are full, arrivals equal answers and the requests in flight stay
level: the counted rate is what the replicas can take, a lower bound of what clients want. An open
stream of requests above capacity makes the requests in flight grow instead, and its rate is exact.

The upper bound needs no rate. If n requests are in flight and no client has more than it has now,
then n / k replicas meet the target whatever the clients do, where k requests circulate at one
replica without thinking and are all answered in time. Worked: batch 8, t(8) = 0.1 s, target 0.25 s:
a request waits half a batch on average and is served with the second of two, so k = 16; 64
connections need 4 replicas, however much they have to send.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.values.observation import CostModel

LEAST_GROWTH, GROWTH = 1.5, 3.0
"""Replicas to request over the ready ones: up to nine times as many after two cold starts."""
LEVEL_S = 4.0
"""Requests in flight count as level if they have not changed beyond chance for so long, or a
request."""
_ALIKE = 1.1
"""Arrivals equal answers up to this factor, and up to chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightHistory:
    """The requests in flight of the last seconds, oldest first: (time, requests)."""

    points: tuple[tuple[float, int], ...] = ()

    def add(
        self, now_s: float, in_flight: int, tick_s: float, level_s: float = LEVEL_S
    ) -> InFlightHistory:
        """Return the history with this tick added, as long as `level_s` needs."""
        kept = [point for point in self.points if now_s - point[0] <= level_s + tick_s / 2]
        return InFlightHistory(points=(*kept, (now_s, in_flight)))

    def level(self, now_s: float, arrival_rps: float, level_s: float = LEVEL_S) -> bool:
        """Return whether the requests in flight changed less than an open stream's do by chance.

        The difference of Poisson arrivals and answers in t seconds has a variance of up to 2 rate
        t; a value within its square root is level. Worked: 160/s, 4 s: within 36 requests.
        """
        if not self.points or now_s - self.points[0][0] < level_s / 2:
            return False
        began_s, before = self.points[0]
        chance = math.sqrt(2.0 * arrival_rps * (now_s - began_s))
        return abs(self.points[-1][1] - before) <= chance


def is_hidden(
    load: Throughput, history: InFlightHistory, now_s: float, level_s: float = LEVEL_S
) -> bool:
    """Return whether the counted arrivals are a lower bound of the demand.

    More answers than arrivals are of a queue from before, or of replicas that are gone. Where
    nothing is answered, no client has sent because of an answer.
    """
    if not load.saturated or load.in_flight <= load.ready or load.answered <= 0.0:
        return False
    kept_up = load.arrived - load.missed <= _ALIKE * load.answered + load.noise
    return kept_up and not works_off(load) and history.level(now_s, load.arrival_rps, level_s)


def works_off(load: Throughput) -> bool:
    """Return whether more requests are answered than arrive: clients send fewer than one each."""
    return load.answered > _ALIKE * load.arrived + load.noise


def concurrency_within(cost: CostModel, target_s: float) -> float:
    """Return how many requests may circulate at one replica so that all are answered in time.

    The largest k with t(min(k, B)) (1/2 + max(1, k / B)) <= target, per slot: half a batch is under
    way when a request arrives, and k / B batches are served until its own ends. At least a share
    of 1, so that no more replicas than requests are wanted.
    """
    per_slot = target_s / cost.batch_s(cost.max_batch) - 0.5
    if per_slot >= 1.0:
        return cost.slots * cost.max_batch * per_slot
    largest = (target_s / 1.5 - cost.fixed_s) / cost.per_item_s if cost.per_item_s > 0 else 1.0
    return cost.slots * min(float(cost.max_batch), max(1.0, largest))


def replicas_for_in_flight(
    load: Throughput, concurrency: float, *, queue_in_front: bool = False
) -> int:
    """Return the replicas that answer everything in flight within the target.

    At most `GROWTH` times the ready ones: the next step follows when these are ready. At least
    `LEAST_GROWTH` times as many: a proxy or the clients may hold more requests than are in flight.
    With a `queue_in_front` of the replicas they certainly do, and nothing bounds their number.
    """
    enough = -(-load.in_flight // max(1.0, concurrency))
    least = GROWTH if queue_in_front else LEAST_GROWTH
    return math.ceil(min(max(enough, least * load.ready), GROWTH * load.ready))
