"""Ends a command quietly where the reader of its output has ended: `headroom --help | head -1`."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NO_READER = 141
"""Exit code of a program that SIGPIPE ends."""


@contextmanager
def quiet_without_reader() -> Iterator[None]:
    """Exit with 141 instead of 1 where standard output was a pipe and lost its reader."""
    piped = _is_pipe()
    try:
        yield
    except SystemExit as ended:
        if ended.code == 1 and piped and not _is_pipe():
            sys.exit(NO_READER)
        raise


def _is_pipe() -> bool:
    """Return whether standard output is a pipe; rich replaces one without a reader."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):
        return False
