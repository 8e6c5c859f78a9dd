"""The processes of a server: started with one compute thread, measured and ended together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.processes import PROC, Process

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
START_PATIENCE_S = 540.0
END_PATIENCE_S = 20.0


class NotStartedError(Exception):
    """A server that did not become ready; the message has the end of its log."""


def group_members(leader: int) -> Sequence[Process]:
    """Return the live processes of a group: a server and all that it started."""
    found = []
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                after_name = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(after_name[2]) == leader and after_name[0] != "Z":
                    found.append(Process(int(folder.name)))
    return found


def cpu_s(leader: int) -> float:
    """Return the time on processors so far of all processes of a group."""
    total = 0.0
    for process in group_members(leader):
        with contextlib.suppress(OSError):
            total += process.cpu_s
    return total


@contextlib.contextmanager
def started(
    command: Sequence[str],
    variables: Mapping[str, str],
    log: Path,
    pipes: int | None = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[str]]:
    """Run a server in a process group of its own; all of it ends with the block.

    In the same session, so that the kernel's groups by session give none of them an advantage.

    Raises:
        NotStartedError: the program cannot be executed.
    """
    with log.open("w", encoding="utf-8") as file:
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **ONE_THREAD, **variables},
                stdin=pipes,
                stdout=pipes if pipes == subprocess.PIPE else file,
                stderr=file,
                text=True,
                process_group=0,
            )
        except OSError as error:
            raise NotStartedError(
                f"the program must be executable; got {command[0]} ({error.strerror}). "
                "Give the Python of an environment that has the server."
            ) from error
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_PATIENCE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    over_s = time.monotonic() + END_PATIENCE_S
    while group_members(process.pid) and time.monotonic() < over_s:
        time.sleep(0.01)  # what it started ends a moment later


def wait_ready(process: subprocess.Popen[str], url: str, log: Path) -> None:
    """Wait until a URL answers with 200.

    Raises:
        NotStartedError: the process ended, or takes too long.
    """
    over_s = time.monotonic() + START_PATIENCE_S
    while process.poll() is None and time.monotonic() < over_s:
        with (
            contextlib.suppress(urllib.error.URLError, OSError),
            urllib.request.urlopen(url, timeout=5.0) as response,
        ):
            if response.status == 200:
                return
        time.sleep(0.25)
    raise NotStartedError(last_lines(log))


def last_lines(log: Path) -> str:
    """Return the end of a log."""
    return log.read_text(encoding="utf-8", errors="replace")[-1500:]
