"""Setup of the process: its log lines, and the return of large blocks of memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOGGED = """
import logging
from headroom.cli.compose.process_setup import configure_logging

configure_logging()
try:
    raise ValueError(said := "a\\n2026-11-27 INFO headroom: all is well \\x1b[2J")
except ValueError:
    logging.getLogger("headroom").exception("vision/a: %s", said)
"""


def test_message_and_error_begin_no_other_line_of_the_log() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGGED], capture_output=True, text=True, check=True
    )
    first, second, *others = done.stderr.splitlines()
    assert first.endswith(r"headroom: vision/a: a 2026-11-27 INFO headroom: all is well \x1b[2J")
    assert second == " Traceback (most recent call last):"
    assert all(line.startswith(" ") for line in others)
    assert others[-1] == r" 2026-11-27 INFO headroom: all is well \x1b[2J"


SCRIPT = """
import os, sys
from headroom.cli.compose.process_setup import return_big_blocks

def resident_mb():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

if sys.argv[1] == "fixed":
    assert return_big_blocks()
del (large := [bytearray(b"x" * 30_000_000)])[:]  # glibc takes its size for what is usual
before = resident_mb()
big, small = [], []
for _ in range(200):
    big.append(bytearray(b"x" * 200_000))
    small.append(bytearray(b"x" * 2_000))
big.clear()
print(resident_mb() - before)
"""


@pytest.mark.parametrize(("threshold", "kept"), [("fixed", False), ("as it comes", True)])
def test_big_blocks_are_returned_while_small_ones_stay(threshold: str, kept: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, threshold], capture_output=True, text=True, check=True
    )
    assert (float(done.stdout) > 20.0) is kept
