"""Compares measured figures with their bounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from bench import figures
from bench.figures import Figure, shown
from serverbench.findings import Findings
from serverbench.peer_servers import PEER_NAMES
from serverbench.records import Case
from serverbench.servers import BARE, OURS

LIGHT_RATIO = 1.02
CPU_RATIO, TYPED_CPU_RATIO = 1.1, 1.4
IDLE_PERCENT, IDLE_MB = 0.5, 100.0
SHARE_OF_IDEAL_PERCENT = 98.0
GOOD_PERCENT, SLOW_GOOD_PERCENT = 90.0, 92.0
REFUSAL_MS, UNREADY_MS = 1.0, 100.0
RECOVERY_RATIO = 1.5
IN_FLIGHT = 16
LENGTHS_RATIO = 1.3
GROWTH_MB = 2.0
"""What the allocator's pools may still move by."""
CLOSE_PEER = "mosec"

Servers = Sequence[str]


def judged(found: Findings, cases: Collection[Case], servers: Servers) -> list[Figure]:
    """One row for each promise of the cases that were asked for, and some for scale."""
    judges = [judge for case, judge in JUDGES.items() if case in cases]
    return [row for judge in judges for row in judge(found, servers)] + _conditions(found)


def at_most(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Return a figure as `bench.figures` does; a missing value fails."""
    return _known(figures.at_most(name, value, bound, unit, digits), value)


def at_least(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Return a figure as `bench.figures` does; a missing value fails."""
    return _known(figures.at_least(name, value, bound, unit, digits), value)


def _known(figure: Figure, value: float) -> Figure:
    return replace(figure, measured="not measured") if math.isnan(value) else figure


def _idle(found: Findings, _: Servers) -> list[Figure]:
    share = found.median(Case.IDLE, OURS, "cpu_percent")
    rss_mb = found.median(Case.IDLE, OURS, "rss_mb")
    return [
        at_most("idle: share of a core", share, IDLE_PERCENT, " %", 2),
        at_most("idle: resident memory, without torch", rss_mb, IDLE_MB, " MB", 0),
    ]


def _light(found: Findings, _: Servers) -> list[Figure]:
    ratio = found.ratio(Case.LIGHT, OURS, BARE, "p50_ms")
    ours, bare = (found.median(Case.LIGHT, name, "p50_ms") for name in (OURS, BARE))
    return [
        shown("20/s: p50, Headroom / bare ASGI", f"{ours:.2f} / {bare:.2f} ms"),
        at_most("20/s: p50 to that of bare ASGI", ratio, LIGHT_RATIO, "x", 3),
    ]


def _steady(found: Findings, servers: Servers) -> list[Figure]:
    ours = found.median(Case.STEADY, OURS, "p95_ms")
    name = "300/s: p95, against the best peer's"
    best = _best(found, Case.STEADY, "p95_ms", servers, min)
    if best is None:
        return [shown(name, f"{ours:.1f} ms; no peer measured")]
    peer, value = best
    return [at_most(f"{name} ({peer})", ours, round(value, 2), " ms", 2)]


def _cpu(found: Findings, servers: Servers) -> list[Figure]:
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


def _knee(found: Findings, servers: Servers) -> list[Figure]:
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


def _overload(found: Findings, _: Servers) -> list[Figure]:
    good = found.median(Case.OVERLOAD, OURS, "good_rps")
    capacity = found.median(Case.OVERLOAD, OURS, "capacity_rps")
    refused_ms = found.median(Case.OVERLOAD, OURS, "refused_p50_ms")
    calm_ms = found.median(Case.OVERLOAD, OURS, "calm_p50_ms")
    recovery = found.ratio_of(Case.OVERLOAD, OURS, "recovery_p50_ms", "calm_p50_ms")
    return [
        at_least(
            f"1.5x overload: {good:.0f} good answers/s of {capacity:.0f}/s",
            100 * good / capacity,
            GOOD_PERCENT,
            " %",
        ),
        at_most("1.5x overload: refusal p50", refused_ms, REFUSAL_MS, " ms", 2),
        at_most(
            f"3 s after it: p50 to that before ({calm_ms:.1f} ms)", recovery, RECOVERY_RATIO, "x", 2
        ),
    ]


def _slow(found: Findings, _: Servers) -> list[Figure]:
    good = found.median(Case.SLOW, OURS, "good_rps")
    capacity = found.median(Case.SLOW, OURS, "capacity_rps")
    first = found.median(Case.SLOW, OURS, "first_rps")
    return [
        shown("device twice as slow: good answers/s in the first 5 s", f"{first:.0f}/s"),
        at_least(
            f"afterwards: {good:.0f}/s of {capacity:.0f}/s",
            100 * good / capacity,
            SLOW_GOOD_PERCENT,
            " %",
        ),
    ]


def _disconnect(found: Findings, _: Servers) -> list[Figure]:
    extra = found.worst(Case.DISCONNECT, OURS, "extra_batches")
    cancelled = found.median(Case.DISCONNECT, OURS, "cancelled")
    return [
        at_most("1000 clients leave: batches executed for them", extra, 0, "", 0),
        shown("of them counted as cancelled", f"{cancelled:.0f}"),
    ]


def _sigterm(found: Findings, _: Servers) -> list[Figure]:
    answered = found.median(Case.SIGTERM, OURS, "answered")
    unready_ms = found.worst(Case.SIGTERM, OURS, "unready_ms")
    return [
        at_least("SIGTERM with 16 in flight: answered", answered, IN_FLIGHT, "", 0),
        at_most("SIGTERM: until not ready", unready_ms, UNREADY_MS, " ms", 0),
        at_most("SIGTERM: exit status", found.worst(Case.SIGTERM, OURS, "exit_code"), 0, "", 0),
    ]


def _lengths(found: Findings, _: Servers) -> list[Figure]:
    def rps(name: str) -> float:
        return found.median(Case.LENGTHS, OURS, name)

    ratio = found.ratio_of(Case.LENGTHS, OURS, "highest_rps", "fifo_rps")
    title = f"lengths 16..512: {rps('highest_rps'):.0f}/s, FIFO padding {rps('fifo_rps'):.0f}/s"
    return [
        shown("lengths: upper bound of FIFO padding", f"{rps('ideal_fifo_rps'):.0f}/s"),
        at_least(title, ratio, LENGTHS_RATIO, "x", 2),
    ]


def _soak(found: Findings, _: Servers) -> list[Figure]:
    def value(name: str) -> float:
        return found.median(Case.SOAK, OURS, name)

    name = f"soak, {value('minutes'):g} min, {value('requests'):.0f} requests"
    return [
        at_most(f"{name}: growth of memory", value("growth_mb"), GROWTH_MB, " MB", 1),
        at_most(f"{name}: lost answers", value("lost"), 0, "", 0),
        at_most(f"{name}: counters off", value("disagreement"), 0, "", 0),
        shown("soak: highest p95 of a minute", f"{value('p95_ms'):.0f} ms"),
    ]


JUDGES: Mapping[Case, Callable[[Findings, Servers], list[Figure]]] = {
    Case.IDLE: _idle,
    Case.LIGHT: _light,
    Case.STEADY: _steady,
    Case.CPU: _cpu,
    Case.KNEE: _knee,
    Case.OVERLOAD: _overload,
    Case.SLOW: _slow,
    Case.DISCONNECT: _disconnect,
    Case.SIGTERM: _sigterm,
    Case.LENGTHS: _lengths,
    Case.SOAK: _soak,
}


def _best(
    found: Findings,
    case: Case,
    name: str,
    servers: Servers,
    choose: Callable[..., tuple[float, str]],
) -> tuple[str, float] | None:
    peers = [server for server in servers if server in PEER_NAMES]
    values = [(found.median(case, peer, name), peer) for peer in peers]
    known = [(value, peer) for value, peer in values if not math.isnan(value)]
    if not known:
        return None
    value, peer = choose(known)
    return peer, value


def _conditions(found: Findings) -> list[Figure]:
    """Return the share of the load generator and of the rest of the machine in these figures."""
    rows = []
    for title, name, unit in (
        ("load generator: CPU per request", "generator_ms", " ms"),
        ("load generator: send delay p99", "late_p99_ms", " ms"),
        ("other CPU use of the machine", "others_cores", " cores"),
    ):
        values = found.everywhere(name)
        if values:
            median, most = statistics.median(values), max(values)
            rows.append(shown(title, f"median {median:.2f}, at most {most:.2f}{unit}"))
    return rows
