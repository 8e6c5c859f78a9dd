"""The workloads of the cells: recorded and synthetic arrivals at a mean rate that is given.

Rate-only traces are cut to the three hours around their steepest rise; recorded requests are used
as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from headroom.simulator.arrivals import PoissonArrivals, RateTrace, replay, shapes, steepest_rise
from headroom.simulator.scenario import Arrivals
from headroom.simulator.traces import shipped_trace

SERVICE = "service"
"""Name of the only service of a cell, and of its stream of random numbers."""
_HOUR_S = 3600.0
ArrivalsAt = Callable[[float], Arrivals]
"""Returns arrivals of a mean rate in requests per second."""
SMOOTH = frozenset({"llm-hour", "servegen", "servegen-bursts", "worldcup", "ramp"})
"""Workloads without jumps between minutes: the class with the strictest promise."""


def _recorded(name: str) -> ArrivalsAt:
    def arrivals(rate_rps: float) -> Arrivals:
        return replay(shipped_trace(name), stream=SERVICE, mean_rps=rate_rps)

    return arrivals


def _steepest(name: str) -> ArrivalsAt:
    def arrivals(rate_rps: float) -> Arrivals:
        trace = shipped_trace(name)
        assert isinstance(trace, RateTrace)
        window = steepest_rise(trace, window_s=3 * _HOUR_S)
        return replay(
            trace,
            stream=SERVICE,
            start_s=window.start_s,
            duration_s=window.duration_s,
            mean_rps=rate_rps,
        )

    return arrivals


def _ramp(rate_rps: float) -> Arrivals:
    """Fourfold within an hour, and constant before and after."""
    profile = shapes.ramp(
        duration_s=2 * _HOUR_S,
        from_rps=0.4 * rate_rps,
        to_rps=1.6 * rate_rps,
        start_s=0.5 * _HOUR_S,
        end_s=1.5 * _HOUR_S,
    )
    return PoissonArrivals(profile=profile, stream=SERVICE)


def _step(rate_rps: float) -> Arrivals:
    """Threefold from one second to the next, after an hour."""
    profile = shapes.step(
        duration_s=3 * _HOUR_S,
        before_rps=0.4286 * rate_rps,
        after_rps=3 * 0.4286 * rate_rps,
        at_s=_HOUR_S,
    )
    return PoissonArrivals(profile=profile, stream=SERVICE)


def _spikes(rate_rps: float) -> Arrivals:
    """Threefold for two minutes, every twenty."""
    profile = shapes.spikes(
        duration_s=2 * _HOUR_S,
        base_rps=rate_rps / 1.2,
        peak_rps=3 * rate_rps / 1.2,
        every_s=1200.0,
        lasting_s=120.0,
        first_s=600.0,
    )
    return PoissonArrivals(profile=profile, stream=SERVICE)


WORKLOADS: dict[str, ArrivalsAt] = {
    "llm-hour": _recorded("azure_llm_2023_conv"),
    "servegen": _recorded("servegen_r1_modelled_4h"),
    "servegen-bursts": _recorded("servegen_mlarge_modelled_thin20_4h"),
    "worldcup": _steepest("worldcup98_to_jun26_60s"),
    "ramp": _ramp,
    "functions-all": _steepest("azfunc2019_all497_60s"),
    "functions-http": _steepest("azfunc2019_http137_60s"),
    "functions-queue": _steepest("azfunc2019_queue_0c0c478d_60s"),
    "functions-spike": _steepest("azfunc2019_http_7017de4f_60s"),
    "step": _step,
    "spikes": _spikes,
}
