"""Bursts: a short window with a much higher rate, and how much of earlier bursts remained.

A burst is worth a replica only if it is still there when that replica serves. What remained of the
similarly strong bursts of the last hour determines how much of this one to expect; a burst stronger
than all of them is expected to last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.scaling.forecast.rate_history import RateHistory
from headroom.scaling.mathematics.chance import e_folds
from headroom.scaling.values.observation import Pod
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tuning import HOUR_S
from headroom.scaling.windows.sliding_windows import Windows
from headroom.scaling.windows.together import APART_S, moves_apart
from headroom.scaling.windows.unscraped import beyond_last_windows

NEARLY = 0.85
"""An earlier burst counts as similar from this share of the rise on."""
BELIEF = 1.5
"""Weight of the assumption that it lasts, in earlier bursts: three that vanished outweigh it."""


def burst_rate_rps(
    policy: Policy, windows: Windows, now_s: float, age_s: float = 0.0, ready: Sequence[Pod] = ()
) -> float | None:
    """Return the highest arrival rate of a short window that counts as a burst; None if none does.

    A window is compared with the rest of the stable window *before* it, so that a burst does not
    raise its own threshold. Worked: 5/s before, 15/s now, 4 s: 60 against 20, z = 8.9. All counters
    are known up to `age_s` ago. Where some are silent, `ready` are the pods: silent ones count with
    at least what the others take.
    """
    watched_s = windows.watched_s(now_s, policy.stable_window_s)
    short_s = [window_s for window_s in policy.burst_windows_s if 2 * window_s <= watched_s]
    if not short_s:
        return None
    if age_s > APART_S and moves_apart(windows, policy.stable_window_s, age_s, now_s):
        return None  # a short window holds the mean of a scrape interval
    windows_s = [*short_s, watched_s]
    counted = windows.arrivals(windows_s)
    if ready:
        counted = [
            count + beyond_last_windows(windows, ready, window_s, now_s, policy.stale_after_s)
            for count, window_s in zip(counted, windows_s, strict=True)
        ]
    *short, watched = counted
    rates = []
    for window_s, arrived in zip(short_s, short, strict=True):
        expected = (watched - arrived) * window_s / (watched_s - window_s)
        if beyond_chance(policy, arrived, expected, 1.0 - window_s / watched_s):
            rates.append(arrived / window_s)
    return max(rates, default=None)


def beyond_chance(policy: Policy, arrived: float, expected: float, before: float = 1.0) -> bool:
    """Return whether more arrived in a short window than chance explains.

    `before` is the share of the watched time that shows what to expect; it counts where that is few
    requests. Worked: 11 where 3 of 23 s are expected are chance (7.6 e-folds of 10.1), though 4.6
    deviations of a normal number.
    """
    deviations = policy.tuning.burst_deviations
    if arrived - expected <= deviations * math.sqrt(max(1.0, expected)):
        return False
    if policy.pace == 1.0:
        return True
    few = before * float(e_folds(np.array([arrived]), max(expected, 1.0))[0])
    return few > deviations**2 / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A short window with a burst."""

    time_s: float
    rate_rps: float
    """Rate of the stable window."""
    burst_rps: float
    """Rate of the short one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """The bursts of the last hour, oldest first."""

    recent: tuple[Burst, ...] = ()

    def observe(self, burst: Burst, apart_s: float) -> Bursts:
        """Return the record with this one added, unless the last is less than `apart_s` old."""
        if self.recent and burst.time_s - self.recent[-1].time_s < apart_s:
            return self
        kept = (old for old in self.recent if burst.time_s - old.time_s <= HOUR_S)
        return Bursts(recent=(*kept, burst))

    def remaining_share(
        self, burst: Burst, history: RateHistory, after_s: float, share: float
    ) -> float:
        """Return the share of the rise to expect `after_s` later, 0..1.

        The quantile `share` of what remained of earlier ones; bursts within half of `after_s` count
        once.
        """
        rise = burst.burst_rps / burst.rate_rps - 1
        remained, last_s = [(1.0, BELIEF)], -math.inf
        for old in self.recent:
            alike = old.burst_rps >= old.rate_rps * (1 + NEARLY * rise)
            if old.time_s - last_s < after_s / 2 or not alike:
                continue
            rate_rps = history.rate_after(old.time_s, after_s)
            if rate_rps is None:
                continue
            last_s = old.time_s
            left = (rate_rps - old.rate_rps) / (old.burst_rps - old.rate_rps)
            remained.append((min(1.0, max(0.0, left)), 1.0))
        remained.sort()
        due = share * sum(weight for _, weight in remained)
        for value, weight in remained:
            due -= weight
            if due <= 0:
                return value
        return 1.0
