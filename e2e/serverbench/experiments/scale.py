"""Duration and repetitions of each measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Seconds of load, without the start of servers; each round measures every server once."""

    name: str
    rounds: int
    peer_rounds: int
    knee_rounds: int
    idle_s: float
    light_s: float
    steady_s: float
    cpu_s: float
    knee_s: float
    knee_step_rps: float
    knee_tries: int
    """Tries of a rate before it counts as too high."""
    calm_s: float
    """Seconds of light load before an overload and after it."""
    overload_s: float
    slow_after_s: float
    slow_judged_s: float
    retries: int
    """Repetitions of a window in which the machine did something else."""


FULL = Scale(
    name="full",
    rounds=3,
    peer_rounds=2,
    knee_rounds=2,
    idle_s=8.0,
    light_s=8.0,
    steady_s=5.0,
    cpu_s=5.0,
    knee_s=6.0,
    knee_step_rps=5.0,
    knee_tries=2,
    calm_s=4.0,
    overload_s=8.0,
    slow_after_s=12.0,
    slow_judged_s=8.0,
    retries=1,
)
QUICK = Scale(
    name="quick",
    rounds=1,
    peer_rounds=1,
    knee_rounds=1,
    idle_s=2.0,
    light_s=3.0,
    steady_s=2.0,
    cpu_s=2.5,
    knee_s=2.0,
    knee_step_rps=10.0,
    knee_tries=1,
    calm_s=2.5,
    overload_s=3.0,
    slow_after_s=6.0,
    slow_judged_s=3.0,
    retries=0,
)
QUICK_PEERS = ("triton", "mosec")
