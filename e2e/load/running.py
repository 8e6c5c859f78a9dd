"""Runs a load generator as a background process.

Its output goes to a file. With a pipe that is not read it would stop, after some 64 KiB, in the
middle of its load, and then send all that was due meanwhile at once.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from load.messages import Summary, read_all

ENDS_WITHIN_S = 60.0
"""After the last request was due."""
GENERATOR = (sys.executable, "-m", "load")


@dataclass(frozen=True)
class Load:
    """A generator that has begun."""

    process: subprocess.Popen[bytes]
    seconds: float
    said: Path

    def has_ended(self) -> bool:
        """Return whether the last answer has come."""
        return self.process.poll() is not None

    def finish(self, *, early: bool = False) -> Summary:
        """Wait for the last answer and return the outcome of every request; early: send no more."""
        if early:
            self.process.terminate()
        self.process.wait(timeout=self.seconds + ENDS_WITHIN_S)
        text = self.said.read_text()
        summaries = [one for one in read_all(text) if isinstance(one, Summary)]
        assert summaries, f"the load generator ended without a summary: {text[-2000:]}"
        return summaries[0]


@contextlib.contextmanager
def running(
    words: Sequence[str], seconds: float, said: Path, program: Sequence[str] = GENERATOR
) -> Iterator[Load]:
    """Run the generator with these arguments, `seconds` of load, until the block ends."""
    with said.open("wb") as file:
        process = subprocess.Popen([*program, *words], stdout=file, stderr=subprocess.STDOUT)
    try:
        yield Load(process, seconds, said)
    finally:
        process.kill()
        process.wait()
