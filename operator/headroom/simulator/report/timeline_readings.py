"""The values that the page shows under the pointer in a timeline, as JSON."""

from __future__ import annotations

import json
import math

from headroom.simulator.outcome import Timeline
from headroom.simulator.report import decimate
from headroom.simulator.report.timeline_layout import BUCKETS, STATES, queued


def readings(timeline: Timeline) -> str:
    """Return the values that the page shows under the pointer, as JSON: one array per quantity.

    Latency and waiting are the maximum of each of some 300 intervals, replicas the value at its
    end; null is unknown, -1 in p95_ms is never answered.
    """
    worst_ms = [_milliseconds(value) for value in decimate.most(timeline.p95_s, BUCKETS).tolist()]
    data: dict[str, list[float | None]] = {
        "t": [round(value, 1) for value in decimate.last(timeline.times_s, BUCKETS).tolist()],
        "load": [_short(value) for value in decimate.most(timeline.arrival_rps, BUCKETS).tolist()],
        "waiting": [_short(value) for value in decimate.most(queued(timeline), BUCKETS).tolist()],
        "p95_ms": worst_ms,
    }
    for name in ("desired", *STATES):
        values = decimate.last(getattr(timeline, name), BUCKETS).tolist()
        data[name] = [_short(value) for value in values]
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _milliseconds(value_s: float) -> float | None:
    if math.isinf(value_s):
        return -1
    return _short(1000 * value_s)


def _short(value: float) -> float | None:
    """Return a value rounded to three digits."""
    if math.isnan(value):
        return None
    short = float(f"{value:.3g}")
    return int(short) if short.is_integer() else short
