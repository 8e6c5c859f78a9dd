"""Minutes at four fifths of capacity, with faulty and impatient clients among the good ones."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from serverbench.experiments.exposition import disagreements, grown, series
from serverbench.generator.arrivals import Segment
from serverbench.generator.exchange import OK, Kind, Status, request_bytes
from serverbench.loading import Values, load
from serverbench.running import Running, running
from serverbench.servers import HEADROOM, ROW, V2_BODY, V2_PATH, Device
from serverbench.windows import quantile

LOAD = 0.8
BAD_SHARE = 0.01
MAX_BODY_BYTES = 4096
ABANDONED_AFTER_S = 0.002
WARM_CONNECTIONS = 32
SAMPLE_S = 1.0
PARTS = 5
"""Memory is compared between the second and the last fifth of the time."""
SETTLE_S = 1.0

GOOD = HEADROOM.kind()
KINDS = (
    GOOD.model_copy(update={"share": 1.0 - 3 * BAD_SHARE}),
    Kind(request=request_bytes(V2_PATH, V2_BODY[:-3]), share=BAD_SHARE),
    GOOD.model_copy(update={"share": BAD_SHARE, "abandoned_after_s": ABANDONED_AFTER_S}),
    Kind(
        request=request_bytes(
            V2_PATH, V2_BODY.replace(ROW, b"[" + b"1.0," * MAX_BODY_BYTES + b"1.0]")
        ),
        share=BAD_SHARE,
    ),
)


def soak(environment: Path, minutes: float, said: Callable[[str], None]) -> Values:
    """Load by the minute; memory every second, the counters at the end."""
    device = Device()
    variables = {"HEADROOM_MAX_BODY_BYTES": str(MAX_BODY_BYTES)}
    seen: Counter[int] = Counter()
    rss_mb: list[float] = []
    p95_ms: list[float] = []
    with running(HEADROOM, device, environment, **variables) as target:
        before = series(target.get("/metrics").decode())
        for minute, seconds in enumerate(_minutes(minutes)):
            said(f"minute {minute + 1} of {minutes:g}")
            run = load(
                target,
                KINDS,
                Segment(LOAD * device.capacity_rps, seconds),
                seed=minute,
                warm_connections=WARM_CONNECTIONS,
                meanwhile=partial(_sample, target, rss_mb, seconds),
            )
            seen.update(run.window.statuses())
            seen[OK] += WARM_CONNECTIONS
            good = [one for one in run.window.requests if one.kind == 0]
            p95_ms.append(1000 * quantile((one.took_s for one in good), 0.95))
        time.sleep(SETTLE_S)
        counted = grown(series(target.get("/metrics").decode()), before)
    wrong = disagreements(counted, seen)
    lost = sum(seen[status] for status in (Status.LOST, Status.TIMED_OUT, Status.WRONG))
    part = max(1, len(rss_mb) // PARTS)
    return {
        "minutes": minutes,
        "requests": sum(seen.values()),
        "lost": lost,
        "p95_ms": max(p95_ms),
        "rss_mb": rss_mb[-1],
        "growth_mb": statistics.median(rss_mb[-part:]) - statistics.median(rss_mb[part : 2 * part]),
        "disagreement": sum(abs(value) for value in wrong.values()),
        **{f"seen_{status}": count for status, count in sorted(seen.items())},
        **{f"off_{name.replace(' ', '_')}": value for name, value in wrong.items()},
    }


def _minutes(minutes: float) -> list[float]:
    whole = int(minutes)
    rest_s = 60 * (minutes - whole)
    return [60.0] * whole + ([rest_s] if rest_s >= 1.0 else [])


def _sample(target: Running, rss_mb: list[float], lasts_s: float) -> None:
    until_s = time.monotonic() + lasts_s
    while time.monotonic() < until_s:
        rss_mb.append(target.usage().rss_mb)
        time.sleep(SAMPLE_S)
