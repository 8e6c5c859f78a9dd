"""The model server's figures compared with bare ASGI applications that run at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import Figure, at_least, at_most, shown
from bench.server.overhead import IDEAL_RPS, RATE_RPS, measure_overhead

CPU_RATIO = 2.2
SHARE_OF_IDEAL_PERCENT = 95.0
RSS_MB = 100.0


def measure() -> Sequence[Figure]:
    """Compare the measured overhead with its bounds."""
    found = measure_overhead()
    return (
        shown("CPU per request, bare ASGI that answers at once", _ms(found.instant_cpu_s)),
        shown("CPU per request, bare ASGI that batches", _ms(found.bare_cpu_s)),
        shown("CPU per request, model server", _ms(found.server_cpu_s)),
        at_most("CPU, model server to the ASGI that batches", found.cpu_ratio, CPU_RATIO, "x", 2),
        shown(f"latency p50 / p95 at {RATE_RPS:.0f}/s", f"{_ms(found.p50_s)} / {_ms(found.p95_s)}"),
        at_most("wrong or missing answers at that rate", found.lost, 0, "", 0),
        shown("throughput, saturated", f"{found.throughput_rps:.0f}/s of {IDEAL_RPS:.0f}/s"),
        at_least(
            "share of the ideal of its cost model",
            100 * found.throughput_ratio,
            SHARE_OF_IDEAL_PERCENT,
            " %",
        ),
        at_most("resident memory after the load", found.rss_mb, RSS_MB, " MB", 0),
        shown("one scrape", _ms(found.scrape_s)),
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
