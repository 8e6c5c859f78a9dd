"""Invalid arrivals are rejected with rule and value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from headroom.simulator.arrivals import (
    CountedArrivals,
    OnOffArrivals,
    Profile,
    replay,
    shapes,
    steepest_rise,
)
from simulator.recordings import RATES, STREAMS, recording

BAD: list[tuple[str, Callable[[], object], str]] = [
    (
        "no duration",
        lambda: shapes.constant(duration_s=0, rps=1),
        "duration must be > 0 s and finite; got 0",
    ),
    (
        "a rate below 0",
        lambda: shapes.constant(duration_s=1, rps=-1),
        "rps must be finite and >= 0; got -1",
    ),
    (
        "a rate of nan",
        lambda: shapes.constant(duration_s=1, rps=math.nan),
        "rps must be finite and >= 0; got nan",
    ),
    (
        "a step at the end",
        lambda: shapes.step(duration_s=9, before_rps=1, after_rps=2, at_s=9),
        "at must lie between 0 s and 9 s; got 9",
    ),
    (
        "a ramp backwards",
        lambda: shapes.ramp(duration_s=9, from_rps=1, to_rps=2, start_s=5, end_s=4),
        "ramp_start must be >= 0 s and < ramp_end, ramp_end <= 9 s; got 5 and 4",
    ),
    ("no stage", lambda: shapes.stages([]), "there must be 1 to 1000000 stages; got 0"),
    (
        "spikes that touch",
        lambda: shapes.spikes(duration_s=9, base_rps=1, peak_rps=2, every_s=3, lasting_s=3),
        "lasting must be > 0 s and < every; got 3, 3",
    ),
    (
        "low above high",
        lambda: shapes.diurnal(duration_s=9, low_rps=3, high_rps=2),
        "low_rps must be <= high_rps; got 3 and 2",
    ),
    (
        "too many periods",
        lambda: shapes.diurnal(duration_s=1e9, low_rps=1, high_rps=2, period_s=1),
        "there must be <= 3472 periods",
    ),
    (
        "no time on",
        lambda: OnOffArrivals(
            duration_s=9, on_rps=1, off_rps=1, mean_on_s=0, mean_off_s=1, stream="a"
        ),
        "mean_on must be > 0 s; got 0",
    ),
    (
        "a seed below 0",
        lambda: list(STREAMS["constant"].chunks(-1)),
        "seed must be an integer >= 0; got -1",
    ),
    (
        "a window beyond the end",
        lambda: replay(RATES, stream="a", start_s=3000, duration_s=900),
        "start + duration must lie within the 3600 s of bins; got 3000 + 900 s",
    ),
    (
        "a start beyond the end",
        lambda: replay(RATES, stream="a", start_s=3600),
        "start must be >= 0 s and < 3600 s; got 3600",
    ),
    (
        "an empty window",
        lambda: replay(RATES, stream="a", start_s=60, duration_s=60),
        "the window of bins must have requests; got 0",
    ),
    (
        "scale and mean",
        lambda: replay(RATES, stream="a", scale=1, mean_rps=1),
        "scale and mean_rps must not both be given; got both",
    ),
    ("scale 0", lambda: replay(RATES, stream="a", scale=0), "scale must be finite and > 0; got 0"),
    (
        "a thousandfold overlay",
        lambda: replay(recording(), stream="a", scale=1001),
        "scale must be > 0 and <= 1000; got 1001",
    ),
    (
        "a profile that starts late",
        lambda: Profile(edges_s=np.array([1.0, 2]), start_rps=np.ones(1), end_rps=np.ones(1)),
        "a rate must begin at 0 s; got 1",
    ),
    ("a profile without end", lambda: Profile.of([(math.inf, 1, 1)]), "edges must be finite"),
    (
        "ticks that stand still",
        lambda: CountedArrivals(
            edges_s=np.array([0.0, 0.0]), counts=np.array([1]), scale=1, stream="a"
        ),
        "edges must increase from 0",
    ),
    (
        "a window that is too short",
        lambda: steepest_rise(RATES, window_s=1200),
        "a window must be longer than 2 x 600 s; got 1200",
    ),
    (
        "a trace that is too short",
        lambda: steepest_rise(RATES),
        "the trace must have a window's 180 bins; got 60",
    ),
]


@pytest.mark.parametrize(("make", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_invalid_arrivals_are_rejected_with_rule_and_value(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match="; got") as refused:
        make()
    assert message in str(refused.value)
