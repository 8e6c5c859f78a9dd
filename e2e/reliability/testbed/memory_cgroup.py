"""A memory cgroup of a container's size, in which a process starts.

A process that is moved into a cgroup leaves what it has to the one before; so it starts inside.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class MemoryCgroup:
    """One cgroup; without rights to make one, the limit is compared with the peak alone."""

    limit_bytes: int
    folder: Path | None

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words before a command that make it start inside."""
        if self.folder is None:
            return ()
        return ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.folder))

    @property
    def kills(self) -> int:
        """Number of processes that the kernel has killed for memory."""
        if self.folder is None:
            return 0
        name = "memory.oom_control" if _is_v1() else "memory.events"
        words = dict(line.split() for line in (self.folder / name).read_text().splitlines())
        return int(words["oom_kill"])

    def peak_bytes(self, pid: int) -> int:
        """Return the largest resident size that a process of it has had."""
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
        raise LookupError(f"process {pid} has no VmHWM")

    def kills_and_peak(self, pid: int, peak_bytes: int) -> tuple[int, int]:
        """Return its kills and the peak of a process; the earlier peak, and a kill, if it ended."""
        try:
            return self.kills, self.peak_bytes(pid)
        except (FileNotFoundError, LookupError):
            return max(1, self.kills), peak_bytes


@contextmanager
def memory_cgroup(limit_bytes: int) -> Iterator[MemoryCgroup]:
    """Make a cgroup of this size, and remove it after its processes have ended."""
    name = f"headroom-test-{os.getpid()}-{secrets.token_hex(4)}"
    folder = (MOUNT / "memory" if _is_v1() else MOUNT) / name
    try:
        folder.mkdir()
        limit = folder / ("memory.limit_in_bytes" if _is_v1() else "memory.max")
        limit.write_text(str(limit_bytes))
    except OSError:
        _remove(folder)
        yield MemoryCgroup(limit_bytes, None)
        return
    try:
        yield MemoryCgroup(limit_bytes, folder)
    finally:
        _remove(folder)


def bytes_of(quantity: str) -> int:
    """Return the bytes of a Kubernetes quantity in Mi or Gi."""
    units = {"Mi": MIB, "Gi": 1 << 30}
    return int(quantity[:-2]) * units[quantity[-2:]]


def _is_v1() -> bool:
    return (MOUNT / "memory" / "memory.limit_in_bytes").exists()


def _remove(folder: Path) -> None:
    """Remove the cgroup, once the kernel has let go of its last process."""
    for _ in range(100):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
