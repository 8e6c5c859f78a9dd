"""`python -m headroom_server`.

Exit codes: 0 after a complete drain, and when told to stop before there was anything to drain; 1
where the model did not get warm, the device was lost, or the drain grace ended too early; 2 where
the settings do not describe a server that can listen here.
"""

from __future__ import annotations

import signal
import sys


def _leave(*_: object) -> None:
    sys.exit(0)


if __name__ == "__main__":
    # The first process of a container ignores signals that it does not handle, and imports take
    # seconds: a pod that is deleted meanwhile would stay for its whole grace period.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    from headroom_server.composition import main

    sys.exit(main())
