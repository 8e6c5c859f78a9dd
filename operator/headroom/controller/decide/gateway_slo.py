"""Latency and rejections as clients see them: windows over the gateways' counters. Pure.

Requests that no replica has seen (rejected by the gateway, or no replica reachable) enter the
decision's windows as arrivals that missed. The percentile, the attainment and the error budget are
measured at the gateways; the cost of a request is learned from replicas only. While the gateways'
counts are not known, no replica is removed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from headroom.controller.gather.gateways.gateway_counters import ServiceTotals
from headroom.gateway.listener.access_counts import Bin
from headroom.scaling import Policy
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import (
    GatewayRejections,
    Observation,
    Pod,
    PodSample,
    PodState,
)
from headroom.scaling.values.signals import Freshness, Signals
from headroom.scaling.windows.signals import read_signals
from headroom.scaling.windows.sliding_windows import Windows

GATEWAYS = "gateways"
"""UID that represents all gateways in windows, which count per pod."""
FINE, COARSE = 1.12, 1.5
"""Ratios of neighbouring bounds: within a factor of 5 of the target, and beyond."""
BYPASSED, ROUTED = 0.6, 0.4
"""A gateway that most requests bypass does not measure what clients see. It is bypassed from this
share of the replicas' arrivals on, until the share is below the second. The gateway's own retries,
one per request, are at most half of the arrivals."""
FINE_STEPS, COARSE_STEPS = 15, 11


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySLI:
    """Latency and misses as gateways counted them, from tick to tick of one service; a value."""

    watched: bool = False
    """Whether its requests come through gateways that are read."""
    windows: Windows = field(default_factory=Windows)
    signals: Signals = field(default_factory=Signals)
    missed_rps: float | None = None
    """Requests a second in the stable window that were refused, failed or given up."""
    silent: tuple[str, ...] = ()
    bypassed: bool = False
    """Whether most requests reach the replicas without a gateway."""

    def observe(self, policy: Policy, totals: ServiceTotals | None, now_s: float) -> GatewaySLI:
        """Process the gateways' counts by now; None: requests do not come through them.

        Nothing begins until each gateway was read once, so that none is taken for zero.
        """
        if totals is None:
            return DIRECT
        if not totals.complete and not self.windows.last:
            return GatewaySLI(watched=True, silent=totals.failed)
        observation = Observation(
            now_s=now_s,
            current=1,
            pods=(Pod(uid=GATEWAYS, state=PodState.READY, created_s=0.0),),
            samples=(_sample(totals, bounds_s(policy.latency_target_s)),),
        )
        windows = self.windows.absorb(observation)
        signals = read_signals(policy, windows, observation, None)
        watched_s = windows.watched_s(now_s, policy.stable_window_s)
        known = signals.arrival_rps.value is not None
        return GatewaySLI(
            watched=True,
            windows=windows,
            signals=signals,
            missed_rps=windows.total(watched_s).missed / watched_s if known else None,
            silent=totals.failed,
            bypassed=self.bypassed,
        )

    def compared(self, replicas: Signals) -> GatewaySLI:
        """Compare with the replicas' counts: a target's other Services bypass gateways."""
        seen, arrived = self.signals.arrival_rps, replicas.arrival_rps
        bypassed = self.bypassed
        if self.watched and seen.value is not None and seen.fresh and arrived.fresh:
            share = 1.0 - seen.value / arrived.value if arrived.value else 0.0
            bypassed = share > (ROUTED if self.bypassed else BYPASSED)
        return replace(self, bypassed=bypassed, watched=self.watched and not bypassed)

    @property
    def rates(self) -> dict[str, float | None]:
        """Return the requests a second by outcome; nothing where none are counted."""
        if not self.watched:
            return {}
        return {"arrived": self.signals.arrival_rps.value, "missed": self.missed_rps}

    @property
    def begun(self) -> bool:
        """Whether every gateway was read at least once."""
        return bool(self.windows.last)

    @property
    def fresh(self) -> bool:
        """Whether the clients' view is recent, or no gateway has to report one."""
        return not self.watched or self.signals.in_flight.fresh

    def freshness(self, replicas: Freshness) -> Freshness:
        """Return the freshness of the signals that SLO windows are judged by."""
        return self.signals.freshness if self.watched else replicas


DIRECT = GatewaySLI()
"""For a service whose requests go directly to its replicas."""


def rejected_at_gateway(totals: ServiceTotals | None) -> GatewayRejections | None:
    """Return the requests that gateways rejected so far; None if not every one was read yet."""
    if totals is None or not totals.complete:
        return None
    return GatewayRejections(time_s=totals.time_s, requests=float(totals.counted.rejected))


def bounds_s(target_s: float) -> tuple[float, ...]:
    """Return the buckets for a target: itself, fine ones around it, coarse ones beyond, +Inf.

    Worked, a target of 1 s: 0.0021, ... 0.797, 0.893, 1, 1.12, 1.25, ... 5.47, 8.21, ... 473.
    """
    fine = [FINE**step for step in range(-FINE_STEPS, FINE_STEPS + 1)]
    above = [fine[-1] * COARSE**step for step in range(1, COARSE_STEPS + 1)]
    below = [fine[0] / COARSE**step for step in range(COARSE_STEPS, 0, -1)]
    return (*(target_s * ratio for ratio in (*below, *fine, *above)), math.inf)


def _sample(totals: ServiceTotals, bounds: tuple[float, ...]) -> PodSample:
    counted = totals.counted
    return PodSample(
        pod=GATEWAYS,
        time_s=totals.time_s,
        arrivals=float(counted.arrived),
        missed=float(counted.missed),
        waiting=0,
        running=counted.active,
        latency=LatencyCounts(bounds_s=bounds, counts=_cumulative(counted.answered, bounds)),
    )


def _cumulative(answered: Mapping[Bin, int], bounds: tuple[float, ...]) -> tuple[float, ...]:
    """Return how many took at most each bound; a bin that a bound cuts is cut by its share.

    More in any bin never makes less of anything: a count that fell would be a restart.
    """
    if not answered:
        return (0.0,) * len(bounds)
    edges_s, counts, total = [], [], 0
    for one in sorted(answered):
        edges_s += [one.lower_us / 1e6, one.upper_us / 1e6]
        counts += [total, total + answered[one]]
        total += answered[one]
    return tuple(np.interp(bounds, edges_s, counts).tolist())
