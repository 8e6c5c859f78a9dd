"""Registry of local clusters: one folder each, locked as long as the cluster lives.

The process that prepares the folder takes the lock and hands it to the keeper as an open file. A
folder whose lock is free has no owner any more, whatever happened to its processes; the next
process removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import IO

from cluster import cgroups
from cluster.errors import ClusterError
from cluster.layout import Cache, Layout

UNLOCKED_GRACE_S = 10.0
"""A folder is locked a moment after it is made: only older ones without a lock are swept."""


def claim(layout: Layout) -> IO[str]:
    """Make the cluster's folder and hold its lock.

    Raises:
        ClusterError: a cluster of that name exists.
    """
    layout.root.parent.mkdir(parents=True, exist_ok=True)
    try:
        layout.root.mkdir(mode=0o700)
    except FileExistsError as error:
        raise ClusterError(
            f"a cluster named {layout.name} exists already. "
            f"Stop it with `python -m cluster down --name {layout.name}`, or choose another name."
        ) from error
    lock = layout.lock.open("a+")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def sign(lock: IO[str]) -> None:
    """Write this process's id into a lock that it holds, so that others know whom to ask."""
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()


def is_held(layout: Layout) -> bool:
    """Return whether the cluster lives, or is being prepared."""
    try:
        with layout.lock.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def keeper_of(layout: Layout) -> int | None:
    """The process id of the cluster's keeper; None where there is none yet or none any more."""
    if not is_held(layout):
        return None
    written = layout.lock.read_text().strip()
    return int(written) if written else None


def living(cache: Cache) -> list[Layout]:
    """The clusters that exist now."""
    if not cache.clusters.exists():
        return []
    layouts = [Layout(folder) for folder in sorted(cache.clusters.iterdir())]
    return [layout for layout in layouts if is_held(layout)]


def sweep(cache: Cache) -> list[str]:
    """Remove the remains of killed keepers; return the names of those clusters."""
    if not cache.clusters.exists():
        return []
    swept = []
    for folder in sorted(cache.clusters.iterdir()):
        layout = Layout(folder)
        if not is_held(layout) and (layout.lock.exists() or _is_old(folder)):
            clear(layout)
            swept.append(layout.name)
    return swept


def clear(layout: Layout) -> None:
    """Remove the cgroups and the folder of a cluster whose processes are gone."""
    if os.geteuid() == 0:
        cgroups.remove(layout.cgroup)
    shutil.rmtree(layout.root, ignore_errors=True)


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > UNLOCKED_GRACE_S
    except FileNotFoundError:
        return False
