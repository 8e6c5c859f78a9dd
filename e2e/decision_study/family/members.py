"""The members of the family: names in two sets, each with the scenario that its name draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from decision_study.family import client_draws, plants
from decision_study.family.draws import Draws
from decision_study.family.loads import LOADS
from decision_study.family.plants import Plant
from headroom.simulator.autoscalers.peer import needed, window_rates
from headroom.simulator.capacity import capacity_rps
from headroom.simulator.closed_loop import closed_loop
from headroom.simulator.plant import ServiceSpec
from headroom.simulator.scenario import Arrivals, Scenario, Workload

DEVELOP, JUDGE = "develop", "judge"
ALONE = "alone"
EACH = 160
SEED = 1
"""The only seed: what is random about a member follows from its name."""
HOUR_S = 3600.0
SIZES = (2.0, 40.0)
CEILING = 0.8
_MOST = 100
_FEWEST = 2000
"""A run with fewer requests says little about a share of 5 %."""
_SLOWEST = 0.15
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One cell of the family."""

    set: str
    number: int

    @property
    def load(self) -> str:
        """Its class of workload."""
        return tuple(LOADS)[self.number % len(LOADS)]

    @property
    def alone(self) -> bool:
        """Whether its clients send regardless of the answers, as two thirds do."""
        return (self.number + self.number // len(LOADS)) % 3 != 0

    @property
    def asks(self) -> str:
        """Behaviour of its clients: alone, or one of the kinds that depend on the answers."""
        if self.alone:
            return ALONE
        return client_draws.kind_of(Draws.of(self.name, "asks"), self.load)

    @property
    def name(self) -> str:
        """Its set, number and class."""
        return f"{self.set}-{self.number:03d}-{self.load}"

    @property
    def hours(self) -> int:
        """Hours of its run; the first is for learning and is not judged."""
        return 2 + Draws.of(self.name, "hours").one_of((0, 1))


MEMBERS: dict[str, Member] = {
    member.name: member
    for which in (DEVELOP, JUDGE)
    for member in (Member(set=which, number=number) for number in range(EACH))
}


@lru_cache(maxsize=8)
def scenario_of(name: str) -> Scenario:
    """Return the scenario of a member: always the same for a name."""
    for attempt in range(_ATTEMPTS):
        found = _scenario(MEMBERS[name], attempt)
        if found is not None:
            return found
    raise AssertionError(f"{name}: no plant that can carry its load in {_ATTEMPTS} draws")


def _scenario(member: Member, attempt: int) -> Scenario | None:
    """Return a draw of a scenario; None if its plant cannot carry the load, or hardly any."""
    aspect = f"{attempt}" if attempt else ""
    plant = plants.drawn(Draws.of(member.name, f"plant{aspect}"))
    duration_s = member.hours * HOUR_S
    draws = Draws.of(member.name, f"load{aspect}")
    arrivals = LOADS[member.load](draws, duration_s, plant.at_once, member.set == JUDGE)
    counts = per_second(arrivals)
    if counts.sum() < _FEWEST:
        return None
    size = Draws.of(member.name, f"size{aspect}").scale(*SIZES)
    spec = plant.spec(_single_s(plant, counts, size), _MOST)
    limit = limit_rps(spec, counts)
    if limit < _SLOWEST * spec.server.full_rps:
        return None
    peak = peak_need(spec, counts, limit)
    if peak > _MOST / 1.5:
        return None
    policy = replace(spec.policy, max_replicas=max(2, -(-3 * peak // 2)))
    spec = replace(spec, policy=policy)
    workload = Workload(spec=spec, arrivals=arrivals)
    if not member.alone:
        draws = Draws.of(member.name, f"clients{aspect}")
        clients = client_draws.clients_of(member.asks, draws, spec, counts)
        if clients is None:
            return None
        spec = replace(spec, clients=clients)
        workload = replace(workload, spec=spec)
        if clients.users is not None:
            workload = closed_loop(spec, duration_s)
    return Scenario(name=member.name, workloads=(workload,))


def per_second(arrivals: Arrivals) -> NDArray[np.float64]:
    """Return the requests of each second, [seconds]."""
    counts = np.zeros(round(arrivals.duration_s))
    for times_s in arrivals.chunks(SEED):
        counts += np.bincount(times_s.astype(np.int64), minlength=len(counts))
    return counts


def limit_rps(spec: ServiceSpec, counts: NDArray[np.float64]) -> float:
    """Return the rate that one replica may be given: its true capacity, and the ceiling."""
    mean = max(1, round(float(counts.mean()) / (0.65 * spec.server.full_rps)))
    return min(capacity_rps(spec, min(mean, 40)), CEILING * spec.server.full_rps)


def peak_need(spec: ServiceSpec, counts: NDArray[np.float64], limit: float) -> int:
    """Return the replicas that the busiest moment needs.

    A moment is as long as the latency target, at least 1 s and at most 20 s: what arrives within
    the target must be answered within about the same time.
    """
    rates = window_rates(counts, min(20, max(1, round(spec.policy.latency_target_s))))
    return int(needed(rates, limit).max())


def _single_s(plant: Plant, counts: NDArray[np.float64], size: float) -> float:
    """Return the seconds of a single request with which the busiest 20 s need this many."""
    peak_rps = float(window_rates(counts, 20).max())
    wanted_s = size * plant.usual_rps / peak_rps
    return min(max(wanted_s, plants.FASTEST_S), plants.SLOWEST_S)
