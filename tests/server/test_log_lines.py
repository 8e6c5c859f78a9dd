"""Errors of models quote what clients send: it begins no line of the log, steers no terminal."""

from __future__ import annotations

import subprocess
import sys

LOGGED = """
import logging
from headroom_server import log_lines

log_lines.configure()
try:
    raise ValueError("got a\\n2026-11-27 INFO ready after 1 s \\x1b[2J\\u202e")
except ValueError as error:
    logging.getLogger("headroom_server").exception("a batch failed: %s", error)
"""


def test_message_and_error_begin_no_other_line_of_the_log() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGGED], capture_output=True, text=True, check=True
    )
    first, *others = done.stderr.splitlines()
    assert first.endswith("ERROR a batch failed: got a")
    said = r" 2026-11-27 INFO ready after 1 s \x1b[2J\u202e"
    assert others[0] == others[-1] == said
    assert all(line.startswith(" ") for line in others)
