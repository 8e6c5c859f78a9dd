"""Judges normal load: idle, light and steady load, CPU time per request, and the highest rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bench.figures import Figure, shown
from serverbench.judgement.bounded_figures import at_least, at_most
from serverbench.judgement.findings import Findings
from serverbench.peer_servers import PEER_NAMES
from serverbench.records import Case
from serverbench.servers import BARE, OURS

LIGHT_RATIO = 1.02
CPU_RATIO, TYPED_CPU_RATIO = 1.1, 1.4
IDLE_PERCENT, IDLE_MB = 0.5, 100.0
SHARE_OF_IDEAL_PERCENT = 98.0
LENGTHS_RATIO = 1.3
CLOSE_PEER = "mosec"


def idle(found: Findings, _: Sequence[str]) -> list[Figure]:
    """Share of a core and memory of a server without requests."""
    share = found.median(Case.IDLE, OURS, "cpu_percent")
    rss_mb = found.median(Case.IDLE, OURS, "rss_mb")
    return [
        at_most("idle: share of a core", share, IDLE_PERCENT, " %", 2),
        at_most("idle: resident memory, without torch", rss_mb, IDLE_MB, " MB", 0),
    ]


def light(found: Findings, _: Sequence[str]) -> list[Figure]:
    """Latency at 20/s, against the bare application."""
    ratio = found.ratio(Case.LIGHT, OURS, BARE, "p50_ms")
    ours, bare = (found.median(Case.LIGHT, name, "p50_ms") for name in (OURS, BARE))
    return [
        shown("20/s: p50, Headroom / bare ASGI", f"{ours:.2f} / {bare:.2f} ms"),
        at_most("20/s: p50 to that of bare ASGI", ratio, LIGHT_RATIO, "x", 3),
    ]


def steady(found: Findings, servers: Sequence[str]) -> list[Figure]:
    """p95 at 300/s, against the best peer."""
    ours = found.median(Case.STEADY, OURS, "p95_ms")
    name = "300/s: p95, against the best peer's"
    best = _best(found, Case.STEADY, "p95_ms", servers, min)
    if best is None:
        return [shown(name, f"{ours:.1f} ms; no peer measured")]
    peer, value = best
    return [at_most(f"{name} ({peer})", ours, round(value, 2), " ms", 2)]


def cpu(found: Findings, servers: Sequence[str]) -> list[Figure]:
    """CPU time per request at 500/s, against a close peer and the bare application."""

    def cpu_ms(server: str, name: str = "cpu_ms") -> float:
        return found.median(Case.CPU, server, name)

    rows = [
        shown(
            "500/s: CPU per request, v2 / typed / bare ASGI",
            f"{cpu_ms(OURS):.3f} / {cpu_ms(OURS, 'typed_cpu_ms'):.3f} / {cpu_ms(BARE):.3f} ms",
        )
    ]
    if CLOSE_PEER in servers:
        ratio = found.ratio(Case.CPU, OURS, CLOSE_PEER, "cpu_ms")
        title = f"500/s: CPU, v2 to {CLOSE_PEER} ({cpu_ms(CLOSE_PEER):.3f} ms)"
        rows.append(at_most(title, ratio, 1.0, "x", 2))
    bare = found.ratio(Case.CPU, OURS, BARE, "cpu_ms")
    typed = found.ratio(Case.CPU, OURS, BARE, "typed_cpu_ms", "cpu_ms")
    return [
        *rows,
        at_most("500/s: CPU, v2 to bare ASGI", bare, CPU_RATIO, "x", 2),
        at_most("500/s: CPU, typed to bare ASGI", typed, TYPED_CPU_RATIO, "x", 2),
    ]


def knee(found: Findings, servers: Sequence[str]) -> list[Figure]:
    """The highest rate with p95 below 100 ms, against the ideal and the best peer."""
    ours = found.median(Case.KNEE, OURS, "highest_rps")
    ideal = found.median(Case.KNEE, OURS, "ideal_rps")
    share = 100 * found.median(Case.KNEE, OURS, "share")
    title = f"highest rate with p95 < 100 ms: {ours:.0f}/s of the ideal {ideal:.0f}/s"
    rows = [at_least(title, share, SHARE_OF_IDEAL_PERCENT, " %")]
    best = _best(found, Case.KNEE, "highest_rps", servers, max)
    if best is None:
        return rows
    peer, value = best
    above = Figure(
        name=f"the same, against the best peer's ({peer})",
        promised=f"above {value:.0f}/s",
        measured=f"{ours:.0f}/s",
        holds=ours > value,
    )
    return [*rows, above]


def lengths(found: Findings, _: Sequence[str]) -> list[Figure]:
    """The highest rate with requests of mixed lengths, against padding in order of arrival."""

    def rps(name: str) -> float:
        return found.median(Case.LENGTHS, OURS, name)

    ratio = found.ratio_of(Case.LENGTHS, OURS, "highest_rps", "fifo_rps")
    title = f"lengths 16..512: {rps('highest_rps'):.0f}/s, FIFO padding {rps('fifo_rps'):.0f}/s"
    return [
        shown("lengths: upper bound of FIFO padding", f"{rps('ideal_fifo_rps'):.0f}/s"),
        at_least(title, ratio, LENGTHS_RATIO, "x", 2),
    ]


def _best(
    found: Findings,
    case: Case,
    name: str,
    servers: Sequence[str],
    choose: Callable[..., tuple[float, str]],
) -> tuple[str, float] | None:
    peers = [server for server in servers if server in PEER_NAMES]
    values = [(found.median(case, peer, name), peer) for peer in peers]
    known = [(value, peer) for value, peer in values if not math.isnan(value)]
    if not known:
        return None
    value, peer = choose(known)
    return peer, value
