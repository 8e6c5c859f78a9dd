"""A generator that runs next to its caller is never blocked by its own output."""

from __future__ import annotations

import sys
from pathlib import Path

from load.messages import Progress, Summary, write
from load.running import running
from load.statistics import Tally

PROGRESS = write(Progress(at_s=1.0, due=1, in_flight=0, tally=Tally())).ljust(700)
SUMMARY = write(Summary(requests=3, tally=Tally(), retried=0, connections=1, late_p99_s=0.0))
FIVE_MINUTES = """
import sys
for _ in range(300):
    print(sys.argv[1], flush=True)  # 210 kB in all: more than any pipe keeps
print(sys.argv[2], flush=True)
"""


def test_long_load_ends_without_a_reader(tmp_path: Path) -> None:
    program = (sys.executable, "-c", FIVE_MINUTES)
    with running([PROGRESS, SUMMARY], 0.0, tmp_path / "said.jsonl", program) as load:
        load.process.wait(timeout=20)
        assert load.finish().requests == 3
