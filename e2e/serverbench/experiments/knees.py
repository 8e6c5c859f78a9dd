"""The highest rate that a server answers in time, and the ideal to compare it with."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache

from serverbench.experiments import ideal
from serverbench.experiments.scale import FULL, Scale
from serverbench.generator.arrivals import Segment, poisson
from serverbench.generator.exchange import Kind
from serverbench.loading import IMPATIENT_S, SLO_S, Values, await_calm, load
from serverbench.running import Running
from serverbench.servers import Device
from serverbench.windows import quantile

LOWEST_RPS, COARSE_STEP_RPS = 100.0, 25.0
FINE_FROM = 0.92
LONG_RUN_S, LONG_RUN_SEEDS = 120.0, range(1, 6)
CANDIDATE_SEEDS = range(1, 101)
LOWEST_IDEAL = 0.7
"""Share of the capacity from which the search for an ideal begins."""


def ladder(ideal_rps: float, scale: Scale) -> list[float]:
    """Rates to try, ascending: coarse far below the ideal, fine where it is decided."""
    rates, rate = [], LOWEST_RPS
    while rate < FINE_FROM * ideal_rps:
        rates.append(rate)
        rate += COARSE_STEP_RPS
    rate = scale.knee_step_rps * round(FINE_FROM * ideal_rps / scale.knee_step_rps)
    while rate <= ideal_rps + scale.knee_step_rps:
        if rate > rates[-1]:
            rates.append(rate)
        rate += scale.knee_step_rps
    return rates


def ideal_knee(device: Device, seconds: float, step_rps: float, seed: int) -> float:
    """The highest rate whose arrivals a server without overhead answers with p95 in time."""
    least, most = (int(part * device.capacity_rps / step_rps) for part in (LOWEST_IDEAL, 1.2))
    rates = [step_rps * at for at in range(least, most)]

    def holds(rate_rps: float) -> bool:
        due_s = poisson([Segment(rate_rps, seconds)], seed)
        took_s = ideal.latencies_s(due_s, device.batch_s, device.max_batch_size)
        return quantile(took_s, 0.95) < SLO_S

    return ideal.highest(rates, holds) or 0.0


@cache
def lasting_knee(device: Device) -> float:
    """The ideal of long runs: about 780 a second for the usual device, of 800 in full batches."""
    step_rps = FULL.knee_step_rps
    knees = [ideal_knee(device, LONG_RUN_S, step_rps, seed) for seed in LONG_RUN_SEEDS]
    return statistics.median(knees)


@cache
def draws(device: Device, scale: Scale) -> list[tuple[float, int]]:
    """Return the ideal and the seed of short runs, those closest to a long run's ideal first.

    Some draws of a few seconds are answered in time at a rate that cannot last.
    """
    lasting_rps = lasting_knee(device)
    found = [
        (ideal_knee(device, scale.knee_s, scale.knee_step_rps, seed), seed)
        for seed in CANDIDATE_SEEDS
    ]
    return sorted(found, key=lambda draw: (abs(draw[0] - lasting_rps), draw[1]))


def knee(target: Running, scale: Scale, number: int, device: Device) -> Values:
    """The highest rate at which the p95 is in time, in round `number` from 0.

    The same seed at all rates gives the same arrivals, closer together.
    """
    ideal_rps, seed = draws(device, scale)[number]
    rates = ladder(ideal_rps, scale)
    highest_rps = highest_rate(target, [target.server.kind()], rates, scale, seed)
    return {"highest_rps": highest_rps, "ideal_rps": ideal_rps, "share": highest_rps / ideal_rps}


def highest_rate(
    target: Running, kinds: Sequence[Kind], rates: Sequence[float], scale: Scale, seed: int
) -> float:
    """Return the highest of the ascending `rates` with p95 in time; 0 if there is none."""

    def holds(rate_rps: float) -> bool:
        for _ in range(scale.knee_tries):
            await_calm(target)
            segment = Segment(rate_rps, scale.knee_s)
            loaded = load(target, kinds, segment, seed=seed, timeout_s=IMPATIENT_S)
            if loaded.window.quantile_s(0.95) < SLO_S:
                return True
            if loaded.window.quantile_s(0.75) > 2 * SLO_S:
                return False  # far off
        return False

    return ideal.highest(rates, holds) or 0.0
