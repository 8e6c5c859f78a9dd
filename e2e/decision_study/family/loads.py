"""The classes of workloads, and one random load of a class. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from decision_study.family import instants, rates
from decision_study.family.draws import Draws
from headroom.simulator.arrivals import PoissonArrivals, Profile, RateTrace, RequestTrace
from headroom.simulator.arrivals.replay import rate_of
from headroom.simulator.scenario import Arrivals
from headroom.simulator.traces import shipped_trace

STREAM = "service"
PEAK_RPS = (8.0, 60.0)
"""Range of a load's peak, in requests per second: it decides only what a run costs."""
RECORDED = (
    "azure_llm_2023_conv",
    "mooncake_conversation_spread",
    "servegen_r1_modelled_4h",
    "servegen_mlarge_modelled_thin20_4h",
)
_FUNCTIONS = "azfunc2019_family_dev_60s"
_COLUMNS = (
    *("queue_34c2db01", "queue_59ddc580", "http_6ebf3ebd", "queue_b932edd1", "queue_81f4b184"),
    *("queue_7f2c31d1", "http_57bcf6db", "timer_c65261be", "http_9c9e6b50", "event_b0063767"),
    *("orchestration_bd5ee3b1", "orchestration_6513d956", "event_b9226e5e", "queue_199e3fbb"),
    *("http_71e479d2", "orchestration_5b170ded", "timer_8026030d", "http_1e14c77d"),
)
"""Functions whose minutes differ; those of even places are for develop, the others for judge."""


def _shaped(shape: Callable[[Draws, float], Profile]) -> _Load:
    def load(draws: Draws, duration_s: float, at_once: int, judged: bool) -> Arrivals:
        return _poisson(shape(draws, duration_s), draws.scale(*PEAK_RPS))

    return load


def _poisson(profile: Profile, peak_rps: float) -> PoissonArrivals:
    highest = max(profile.start_rps.max(), profile.end_rps.max())
    return PoissonArrivals(profile=profile.scaled(peak_rps / highest), stream=STREAM)


def _self_exciting(draws: Draws, duration_s: float, at_once: int, judged: bool) -> Arrivals:
    times_s = instants.self_exciting(
        draws,
        duration_s,
        rps=draws.scale(3, 20),
        share=draws.between(0.5, 0.9),
        decay_s=draws.scale(2, 120),
    )
    return instants.listed(times_s, duration_s, STREAM)


def _clumps(draws: Draws, duration_s: float, at_once: int, judged: bool) -> Arrivals:
    """Return 10 to 200 at once, at most what thirty replicas can answer in time."""
    every_s = draws.scale(10, 180)
    size = round(min(draws.scale(10, 200), 30 * at_once, 30 * every_s))
    times_s = instants.clumps(
        draws,
        duration_s,
        size=size,
        every_s=every_s,
        jitter=draws.one_of((0.0, 0.0, 0.1, 0.5)),
        background_rps=draws.one_of((0.0, 0.2, 1.0)) * size / every_s,
    )
    return instants.listed(times_s, duration_s, STREAM)


def _recorded(draws: Draws, duration_s: float, at_once: int, judged: bool) -> Arrivals:
    trace = shipped_trace(draws.one_of(RECORDED))
    assert isinstance(trace, RequestTrace)
    start_s = draws.between(0, trace.duration_s)
    times_s = instants.recorded(trace, start_s=start_s, duration_s=duration_s)
    return instants.listed(times_s, duration_s, STREAM)


def _functions(draws: Draws, duration_s: float, at_once: int, judged: bool) -> Arrivals:
    """Return a function's minutes, times a constant."""
    trace = shipped_trace(_FUNCTIONS, draws.one_of(_COLUMNS[judged::2]))
    assert isinstance(trace, RateTrace)
    bins = round(duration_s / trace.bin_s)
    busy = trace.requests > 0
    starts = [s for s in range(len(busy) - bins + 1) if busy[s : s + bins].sum() >= bins / 20]
    start_s = trace.bin_s * draws.one_of(starts or [0])
    return _poisson(rate_of(trace, start_s, start_s + duration_s), draws.scale(*PEAK_RPS))


_Load = Callable[[Draws, float, int, bool], Arrivals]

LOADS: Mapping[str, _Load] = {
    "jumps": _shaped(rates.jumps),
    "modulated": _shaped(rates.modulated),
    "self-exciting": _self_exciting,
    "on-off": _shaped(rates.on_off),
    "clumps": _clumps,
    "growth": _shaped(rates.growth),
    "daily": _shaped(rates.daily),
    "surges": _shaped(rates.surges),
    "recorded": _recorded,
    "functions": _functions,
}
"""A class's draw: random numbers, seconds, what one replica answers at once, whether it judges."""
