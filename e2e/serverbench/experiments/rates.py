"""Cases on the usual device: idle, light and steady load, CPU, overload."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from serverbench.experiments.scale import Scale
from serverbench.generator.arrivals import Segment
from serverbench.generator.exchange import Kind
from serverbench.loading import IMPATIENT_S, SLO_S, Loaded, Values, await_calm, load
from serverbench.running import Running
from serverbench.servers import OURS, TYPED, Device

LIGHT_RPS, STEADY_RPS, CPU_RPS = 20.0, 300.0, 500.0
CALM_RPS = 200.0
OVERLOAD = 1.5
RECOVERY_S = 3.0
NOISY_CORES = 0.25
SETTLE_S = 1.0
"""After a start, before a server is said to be idle."""
CARRIED = 0.9
"""A server that answers fewer cannot carry the rate, and has no cost per request at it."""


def idle(targets: Sequence[Running], scale: Scale) -> Mapping[str, Values]:
    """Measure idle servers, all in the same seconds."""
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
    """Send a request now and then: measure the latency of one that meets no other."""
    few = 4
    return _latencies(
        _quiet(target, [target.server.kind()], Segment(LIGHT_RPS, scale.light_s), scale, seed, few)
    )


def steady(target: Running, scale: Scale, seed: int) -> Values:
    """Send requests at somewhat over a third of the capacity."""
    kinds = [target.server.kind()]
    return _latencies(_quiet(target, kinds, Segment(STEADY_RPS, scale.steady_s), scale, seed))


def cpu(target: Running, scale: Scale, seed: int) -> Values:
    """Measure the CPU time of a request; for Headroom's with both of its protocols."""
    segment = Segment(CPU_RPS, scale.cpu_s)
    found = _latencies(_quiet(target, [target.server.kind()], segment, scale, seed))
    if target.server.name == OURS:
        typed = _latencies(_quiet(target, [TYPED], segment, scale, seed))
        found |= {f"typed_{name}": value for name, value in typed.items()}
    return found


def overload(target: Running, scale: Scale, seed: int, device: Device) -> Values:
    """Send more than the capacity for a while, between two stretches of light load.

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
    """Return whether it understands what only Headroom's server does."""
    return target.server.name == OURS


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
