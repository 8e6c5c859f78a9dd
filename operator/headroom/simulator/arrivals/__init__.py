"""Arrivals: recorded traces, shapes of load and Headroom's recordings, as seeded times."""

from headroom.simulator.arrivals.counted import CountedArrivals
from headroom.simulator.arrivals.poisson import OnOffArrivals, PoissonArrivals
from headroom.simulator.arrivals.rates import Profile
from headroom.simulator.arrivals.recorded_trace import RateTrace, RequestTrace, Trace, TraceError
from headroom.simulator.arrivals.replay import ReplayedArrivals, replay
from headroom.simulator.arrivals.windows import SteepWindow, steepest_rise

__all__ = [
    "CountedArrivals",
    "OnOffArrivals",
    "PoissonArrivals",
    "Profile",
    "RateTrace",
    "ReplayedArrivals",
    "RequestTrace",
    "SteepWindow",
    "Trace",
    "TraceError",
    "replay",
    "steepest_rise",
]
