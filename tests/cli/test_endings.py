"""Ends of the command line: Ctrl-C while libraries are read, and a reader that has ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headroom.cli.broken_pipe import NO_READER
from headroom.cli.main import INTERRUPTED

_INTERRUPTED = """
import builtins
real = builtins.__import__
def interrupted(name, *rest):
    if name == "headroom.cli.app":
        raise KeyboardInterrupt
    return real(name, *rest)
builtins.__import__ = interrupted
from headroom.cli import main
main()
"""


def test_interrupt_while_libraries_are_read_ends_without_a_traceback() -> None:
    command = [sys.executable, "-c", _INTERRUPTED, "simulate", "step"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (INTERRUPTED, "", "")


@pytest.mark.clock
@pytest.mark.parametrize("program", ["headroom", "cluster"])
def test_help_without_a_reader_ends_quietly_as_by_sigpipe(program: str) -> None:
    command = [sys.executable, "-m", program, "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        said = started.stderr.read()
    assert (started.returncode, said) == (NO_READER, b"")
