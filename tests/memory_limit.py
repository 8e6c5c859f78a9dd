"""A memory cgroup of a container's size around a process, where cgroups can be written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


@contextmanager
def memory_limit(pid: int, limit_bytes: int) -> Iterator[bool]:
    """Limit a process to this much memory; False where no cgroup can be made."""
    v1 = (MOUNT / "memory" / "memory.limit_in_bytes").exists()
    folder = (MOUNT / "memory" if v1 else MOUNT) / f"headroom-test-{os.getpid()}-{pid}"
    try:
        folder.mkdir()
    except OSError:
        yield False
        return
    try:
        try:
            limit = folder / ("memory.limit_in_bytes" if v1 else "memory.max")
            limit.write_text(str(limit_bytes))
            (folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            yield False
        else:
            yield True
    finally:
        _remove(folder)


def peak_bytes(pid: int) -> int:
    """Return the largest resident size that a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    raise LookupError(f"process {pid} has no VmHWM")


def _remove(folder: Path) -> None:
    """Remove the cgroup, once the kernel has let go of its last process."""
    for _ in range(100):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            return
