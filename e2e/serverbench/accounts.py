"""CPU time and memory of all processes that carry a mark, children included."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from bench.processes import PROC, Process

MARK = "SERVERBENCH_MARK"


class Usage(NamedTuple):
    """CPU time and memory of a group of processes."""

    cpu_s: float
    rss_mb: float
    """Summed: pages that are shared count in each."""
    processes: int


def marked(mark: str) -> Iterator[int]:
    """Processes that were started with this mark in their environment, by whatever way."""
    wanted = f"{MARK}={mark}".encode()
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)


def usage(mark: str) -> Usage:
    """Return the usage of all processes that carry the mark now."""
    cpu_s = rss_mb = 0.0
    count = 0
    for pid in marked(mark):
        with contextlib.suppress(OSError):
            process = Process(pid)
            cpu_s, rss_mb, count = cpu_s + process.cpu_s, rss_mb + process.rss_mb, count + 1
    return Usage(cpu_s, rss_mb, count)


def machine_cpu_s() -> float:
    """Return the CPU time of this machine so far, including what a hypervisor took."""
    fields = (PROC / "stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")
