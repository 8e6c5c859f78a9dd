"""`python -m headroom_server.fronts <opening>`: how the device process starts a front."""

from __future__ import annotations

import logging
import signal
import sys

import uvloop

from headroom_server.fronts.front import Opening, run
from headroom_server.process import quiet_garbage_collector


def main() -> None:
    """Run a front. Signals are the device process's: it tells its fronts when to leave."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    quiet_garbage_collector()
    uvloop.run(run(Opening.loads(sys.argv[1])))


if __name__ == "__main__":
    main()
