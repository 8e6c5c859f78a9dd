"""Runs a program to its end and turns a failure into an error with the program's output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.errors import ClusterError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHOWN_LINES = 20


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The present environment with the system folders on the path (sbin is often missing)."""
    merged = dict(os.environ)
    merged["PATH"] = f"{merged.get('PATH', '')}:{SYSTEM_PATH}".lstrip(":")
    merged.update(extra or {})
    return merged


def run(
    argv: Sequence[str | Path],
    *,
    what: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout_s: float | None = None,
) -> str:
    """Run to the end and return standard output; `what` names the step in the error.

    Raises:
        ClusterError: the program is missing, failed, or took longer than `timeout_s`.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            env=environment(env),
            cwd=cwd,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{what}: the program {words[0]} is not on this machine.") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{what}: not done within {timeout_s:g} s: {' '.join(words)}") from error
    if done.returncode != 0:
        said = tail(done.stderr.strip() or done.stdout.strip())
        raise ClusterError(f"{what}: {words[0]} ended with status {done.returncode}:\n{said}")
    return done.stdout


def tail(text: str, lines: int = SHOWN_LINES) -> str:
    """The last lines of a text."""
    return "\n".join(text.splitlines()[-lines:])
