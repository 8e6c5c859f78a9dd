"""`python -m reliability.soak HOURS SEED SERVICES`: one soak in a process of its own.

Needs tests/ on the path. Prints a line of JSON for each count, and the results at the end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from dataclasses import asdict

from reliability.soak.soak_results import Count, SoakResults
from reliability.soak.world import World
from support.virtual_time import VirtualTimeLoop

COUNTS = 48


def soak(hours: float, seed: int, services: int, *, tell: bool = False) -> SoakResults:
    """Run the hours; write each count to standard output."""

    def counted(count: Count) -> None:
        if tell:
            print(json.dumps({"count": asdict(count)}), flush=True)

    async def whole() -> SoakResults:
        return await World(seed, hours, services, hours * 3600.0 / COUNTS).live(counted)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(whole())


def main() -> None:
    """Run the soak of the command line."""
    logging.getLogger("headroom").setLevel(logging.CRITICAL)  # complaints are what it is about
    hours, seed, services = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    results = soak(hours, seed, services, tell=True)
    print(json.dumps({"results": results.as_json()}), flush=True)


if __name__ == "__main__":
    main()
