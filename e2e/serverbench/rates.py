"""Cases on the usual device: idle, light and steady load, CPU, the highest rate, overload."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from functools import cache

from serverbench import ideal
from serverbench.arrivals import Segment, poisson
from serverbench.exchange import Kind
from serverbench.loading import Loaded, load
from serverbench.running import Running
from serverbench.scale import FULL, Scale
from serverbench.servers import OURS, TYPED, Device
from serverbench.windows import quantile

LIGHT_RPS, STEADY_RPS, CPU_RPS = 20.0, 300.0, 500.0
SLO_S = 0.1
CALM_RPS = 200.0
OVERLOAD = 1.5
RECOVERY_S = 3.0
IMPATIENT_S = 2.0
"""Where only answers within 0.1 s count, nobody is waited for much longer."""
LOWEST_RPS, COARSE_STEP_RPS = 100.0, 25.0
FINE_FROM = 0.92
NOISY_CORES = 0.25
CALM_PATIENCE_S = 20.0
SETTLE_S = 1.0
"""After a start, before a server is said to be idle."""
LONG_RUN_S, LONG_RUN_SEEDS = 120.0, range(1, 6)
CANDIDATE_SEEDS = range(1, 101)
CARRIED = 0.9
"""A server that answers fewer cannot carry the rate, and has no cost per request at it."""
LOWEST_IDEAL = 0.7
"""Of the capacity: where an ideal is looked for."""

Values = dict[str, float]


def idle(targets: Sequence[Running], scale: Scale) -> Mapping[str, Values]:
    """Of servers that nobody asks anything, all in the same seconds."""
    time.sleep(SETTLE_S)
    before = {target.server.name: target.usage() for target in targets}
    began_s = time.monotonic()
    time.sleep(scale.idle_s)
    wall_s = time.monotonic() - began_s
    found: dict[str, Values] = {}
    for target in targets:
        name, now = target.server.name, target.usage()
        found[name] = {
            "cpu_percent": 100 * (now.cpu_s - before[name].cpu_s) / wall_s,
            "rss_mb": now.rss_mb,
            "processes": now.processes,
        }
    return found


def light(target: Running, scale: Scale, seed: int) -> Values:
    """A request now and then: what one takes that meets no other."""
    few = 4
    return _latencies(
        _quiet(target, [target.server.kind()], Segment(LIGHT_RPS, scale.light_s), scale, seed, few)
    )


def steady(target: Running, scale: Scale, seed: int) -> Values:
    """Somewhat over a third of the capacity."""
    kinds = [target.server.kind()]
    return _latencies(_quiet(target, kinds, Segment(STEADY_RPS, scale.steady_s), scale, seed))


def cpu(target: Running, scale: Scale, seed: int) -> Values:
    """What a request costs a processor; ours over both of its protocols."""
    segment = Segment(CPU_RPS, scale.cpu_s)
    found = _latencies(_quiet(target, [target.server.kind()], segment, scale, seed))
    if target.server.name == OURS:
        typed = _latencies(_quiet(target, [TYPED], segment, scale, seed))
        found |= {f"typed_{name}": value for name, value in typed.items()}
    return found


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


def representative(device: Device, scale: Scale, number: int) -> tuple[int, float]:
    """A seed, and the ideal knee of its few seconds: the one nearest but `number` to a long run's.

    In some draws a few seconds pass at a rate that cannot last; those say nothing.
    """
    step_rps = scale.knee_step_rps
    lasting_rps = lasting_knee(device)
    knees = [(ideal_knee(device, scale.knee_s, step_rps, s), s) for s in CANDIDATE_SEEDS]
    knees.sort(key=lambda knee: (abs(knee[0] - lasting_rps), knee[1]))
    knee_rps, seed = knees[number]
    return seed, knee_rps


def knee(target: Running, scale: Scale, number: int, device: Device) -> Values:
    """The highest rate at which the p95 is in time, in round `number` from 0.

    The same seed at all rates gives the same arrivals, closer together.
    """
    seed, ideal_rps = representative(device, scale, number)
    rates = ladder(ideal_rps, scale)
    highest_rps = highest_rate(target, [target.server.kind()], rates, scale, seed)
    return {"highest_rps": highest_rps, "ideal_rps": ideal_rps, "share": highest_rps / ideal_rps}


def highest_rate(
    target: Running, kinds: Sequence[Kind], rates: Sequence[float], scale: Scale, seed: int
) -> float:
    """Of the ascending `rates`, the highest with p95 in time; 0 where none is."""

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


def overload(target: Running, scale: Scale, seed: int, device: Device) -> Values:
    """More than can be done for a while, between two stretches of light load.

    Our requests carry their deadline; peers have none at their defaults.
    """
    kind = (
        target.server.kind(x_request_timeout=f"{SLO_S}")
        if is_ours(target)
        else (target.server.kind())
    )
    segments = (
        Segment(CALM_RPS, scale.calm_s),
        Segment(OVERLOAD * device.capacity_rps, scale.overload_s),
        Segment(CALM_RPS, scale.calm_s),
    )
    await_calm(target)
    loaded = load(target, [kind], *segments, seed=seed, timeout_s=IMPATIENT_S)
    over_s = scale.calm_s + scale.overload_s
    during = loaded.window.between(scale.calm_s, over_s)
    before = loaded.window.between(min(1.0, scale.calm_s / 4), scale.calm_s)
    after = loaded.window.between(over_s, over_s + RECOVERY_S)
    return {
        "good_rps": during.good_rps(SLO_S),
        "capacity_rps": device.capacity_rps,
        "refused_p50_ms": 1000 * during.refused_quantile_s(0.5),
        "calm_p50_ms": 1000 * before.quantile_s(0.5),
        "recovery_p50_ms": 1000 * after.quantile_s(0.5),
        "lost": during.count(lambda one: one.status <= 0),
        **_conditions(loaded),
    }


def is_ours(target: Running) -> bool:
    """Whether it understands what only our server does."""
    return target.server.name == OURS


def await_calm(target: Running) -> None:
    """Until requests of one's own are answered promptly: what an earlier load left is done."""
    until_s, prompt = time.monotonic() + CALM_PATIENCE_S, 0
    while prompt < 2 and time.monotonic() < until_s:
        began_s = time.monotonic()
        with contextlib.suppress(OSError):
            target.probe(timeout_s=IMPATIENT_S)
            prompt = prompt + 1 if time.monotonic() - began_s < SLO_S / 2 else 0
        time.sleep(0.02)


def _quiet(
    target: Running,
    kinds: Sequence[Kind],
    segment: Segment,
    scale: Scale,
    seed: int,
    warm_connections: int = 32,
) -> Loaded:
    """The quietest of a few tries."""
    await_calm(target)
    tries: list[Loaded] = []
    while not tries or (tries[-1].others_cores > NOISY_CORES and len(tries) <= scale.retries):
        tries.append(load(target, kinds, segment, seed=seed, warm_connections=warm_connections))
    return min(tries, key=lambda one: one.others_cores)


def _latencies(loaded: Loaded) -> Values:
    window, answered = loaded.window, loaded.window.count(lambda one: one.ok)
    carried = answered >= CARRIED * len(window.requests)
    return {
        "p50_ms": 1000 * window.quantile_s(0.50),
        "p95_ms": 1000 * window.quantile_s(0.95),
        "p99_ms": 1000 * window.quantile_s(0.99),
        "cpu_ms": 1000 * loaded.server_cpu_s / answered if carried else math.inf,
        "lost": len(window.requests) - answered,
        **_conditions(loaded),
    }


def _conditions(loaded: Loaded) -> Values:
    return {
        "generator_ms": loaded.generator_ms,
        "late_p99_ms": 1000 * loaded.answers.late_p99_s,
        "others_cores": loaded.others_cores,
        "rss_after_mb": loaded.rss_mb,
    }
