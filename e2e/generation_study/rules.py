"""Rules that cause flaps, misses and replica-hours: `python -m generation_study rules`.

- flaps by the rule that removed and the rule that added again
- misses by the first cause that applies (`misses.py`)
- replica-hours above the cheapest clairvoyant that keeps the promises, by the reason of the last
  decision that names another than `WithinTarget`, and what is missing below it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from generation_study.misses import ALIVE, Cause, Known, causes
from generation_study.own_workloads import Workload
from generation_study.running import SEED
from generation_study.settings import CLAIRVOYANTS
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.generation.learning.model_inputs import Inputs
from headroom.scaling.generation.replica_model.replica import TailFactors
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Routing
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.generation.autoscalers.catalogue import autoscaler
from headroom.simulator.generation.autoscalers.headroom import TokenHeadroom
from headroom.simulator.generation.outcome import Floats, Move, TokenOutcome, missed
from headroom.simulator.generation.run import FLAP_S, LOOK_S, Run, Truth, simulate_tokens

_NEAR_S = 300.0
"""The true capacity is that for the lengths of the requests within this time before and after."""
_EVERY_S = 20.0
_REPLICAS = 5
"""Number of replicas at which capacities are compared."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Flaps, misses and replica-hours of one run, by rule."""

    name: str
    requests: int
    attainment: float
    kept: bool
    flaps: Counter[tuple[str, str]]
    causes: Counter[Cause]
    """Late requests."""
    hours: float
    """Replica-hours."""
    best_hours: float
    """GPU-hours of the clairvoyant."""
    best_kept: bool
    """Whether it keeps the promises: otherwise it is the one with the most replicas."""
    above: Mapping[str, float]
    """Replica-hours more than the clairvoyant, by reason."""
    below: float
    """Replica-hours fewer than the clairvoyant, at other times."""
    capacities: tuple[float, float, float]
    """Learned over true capacity: least, median, most."""


@dataclass(kw_only=True)
class Watched(TokenHeadroom):
    """Headroom, with what it learned from time to time."""

    learned: list[tuple[float, Inputs]] = field(default_factory=list, init=False, repr=False)
    reasons: list[tuple[float, str]] = field(default_factory=list, init=False, repr=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the decision, and note it."""
        request, inputs = super().evaluate(view), self.state.generation.inputs
        if request.reason != Reason.WITHIN_TARGET.value or not self.reasons:
            self.reasons.append((view.now_s, request.reason))
        due = not self.learned or view.now_s - self.learned[-1][0] >= _EVERY_S
        if inputs is not None and due:
            self.learned.append((view.now_s, inputs))
        return request


def of_run(workload: Workload) -> Rules:
    """Run Headroom and the clairvoyants, and compare them."""
    service = workload.service
    requests = workload.requests.bounded(service.engine.context_tokens)
    own = Watched(truth=Truth(service=service, requests=requests))
    run = Run(service, requests, own, SEED)
    run.until(requests.duration_s)
    outcome = run.outcome(0.0)
    share, best = _clairvoyant(workload)
    times_s, ratios = _capacities(own, workload)
    known = Known(
        looks=outcome.timeline,
        share=share,
        preempted=run.plant.preempted > 0,
        learned_s=times_s,
        learned=ratios,
    )
    late = np.maximum.reduce(missed(run.plant, service.targets)) > 0.0
    above, below = hours_by_reason(own.reasons, outcome.timeline, best.timeline)
    gpus = service.engine.gpus
    return Rules(
        name=workload.name,
        requests=len(requests),
        attainment=outcome.score.attainment,
        kept=outcome.score.kept,
        flaps=flaps(outcome.moves, service.start_s),
        causes=causes(workload, late, known),
        hours=outcome.score.gpu_hours / gpus,
        best_hours=best.score.gpu_hours / gpus,
        best_kept=best.score.kept,
        above=above,
        below=below,
        capacities=(float(ratios.min()), float(np.median(ratios)), float(ratios.max())),
    )


def flaps(moves: Sequence[Move], start_s: float) -> Counter[tuple[str, str]]:
    """Return the flaps by the rules of the last removal and of the addition after it."""
    found: Counter[tuple[str, str]] = Counter()
    down: Move | None = None
    for move in moves:
        if move.after < move.before:
            down = move
        elif down is not None and move.time_s - down.time_s <= start_s + FLAP_S:
            found[down.reason, move.reason] += 1
    return found


def _clairvoyant(workload: Workload) -> tuple[float, TokenOutcome]:
    """Return share and run of the cheapest that keeps the promises; the dearest if none does."""
    for setting in reversed(CLAIRVOYANTS):  # the larger the share, the fewer replicas
        knobs = dict(setting.knobs)
        make = autoscaler(setting.kind, **knobs)
        outcome = simulate_tokens(workload.service, workload.requests, make, SEED)
        if outcome.score.kept:
            break
    return float(knobs["share"]), outcome


def _capacities(own: Watched, workload: Workload) -> tuple[Floats, Floats]:
    """Return times, and learned over true capacity for the lengths around each."""
    service, requests = workload.service, workload.requests
    bounded = requests.bounded(service.engine.context_tokens)
    times, found = [], []
    for now_s, inputs in own.learned:
        near = np.abs(bounded.arrival_s - now_s) < _NEAR_S
        if not near.any():
            continue
        engine = service.engine
        true = Inputs(
            cost=engine.cost,
            shape=bounded.taken(near).shape(),
            limits=engine.limits,
            factors=TailFactors(),
        )
        learned, known = (
            fleet_of(one, service.targets, Routing.LEAST_IN_FLIGHT, 1.0).capacity_rps(
                1.0, _REPLICAS
            )
            for one in (inputs, true)
        )
        times.append(now_s)
        found.append(learned / known)
    return np.array(times), np.array(found)


def hours_by_reason(
    reasons: Sequence[tuple[float, str]], own: Floats, best: Floats
) -> tuple[dict[str, float], float]:
    """Return the replica-hours of looks above the best ones by reason, and those below.

    `reasons` are (time, reason) of decisions; `own` and `best` the looks of both runs.
    """
    rows = min(len(own), len(best))
    more = own[:rows, ALIVE] - best[:rows, ALIVE]
    index = np.searchsorted([time_s for time_s, _ in reasons], own[:rows, 0], side="right") - 1
    found: dict[str, float] = {}
    for number, extra in zip(np.maximum(0, index).tolist(), more.tolist(), strict=True):
        reason = reasons[number][1]
        if extra > 0.0:
            found[reason] = found.get(reason, 0.0) + extra * LOOK_S / 3600.0
    return found, -float(more[more < 0.0].sum()) * LOOK_S / 3600.0
