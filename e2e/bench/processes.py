"""CPU time and memory of a process, from /proc."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this machine, in whatever namespaces it lives."""

    pid: int

    @property
    def cpu_s(self) -> float:
        """Time on a processor so far, all threads that live."""
        tasks = (PROC / str(self.pid) / "task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    @property
    def rss_mb(self) -> float:
        """Resident memory now."""
        pages = int((PROC / str(self.pid) / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def peak_mb(self) -> float:
        """The most resident memory so far."""
        status = (PROC / str(self.pid) / "status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6


def of_container(container_id: str) -> Sequence[Process]:
    """Find a container's processes by its ID in their cgroup; any version of cgroups names it."""
    found = []
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            try:
                groups = (folder / "cgroup").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            if container_id in groups:
                found.append(Process(int(folder.name)))
    return found
