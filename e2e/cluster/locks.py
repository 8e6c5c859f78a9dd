"""File locks for work that is done once: other processes wait and then find it done."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.progress import Progress


@contextmanager
def exclusive(path: Path, what: str, progress: Progress) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; waiting is shown as a step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"Waiting for another process: {what}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold a shared lock on `path`: no process has it exclusively meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
