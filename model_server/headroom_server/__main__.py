"""`python -m headroom_server`, and `headroom-server`.

Exit codes of `serve`: 0 after a complete drain, and when told to stop before there was anything to
drain; 1 where a model did not get warm, the device was lost, or the drain grace ended too early; 2
where settings and repository do not describe a server that can listen here. Of `check`: 0 where
every model is sound, 1 where one is not, 2 for a wrong flag.
"""

from __future__ import annotations

import signal
import sys


def _leave(*_: object) -> None:
    sys.exit(0)


def main() -> None:
    """Run the command that the arguments name, and exit."""
    # The first process of a container ignores signals that it does not handle, and imports take
    # seconds: a pod that is deleted meanwhile would stay for its whole grace period.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    from headroom_server import cli  # noqa: PLC0415 - see above

    sys.exit(cli.main(sys.argv[1:]))


if __name__ == "__main__":
    main()
