"""The command `headroom-server` (also `python -m headroom_server`).

Exit codes of `serve`: 0 after a complete drain, or if stopped before it was ready; 1 if a model did
not become warm, a device was lost, or the drain grace period ended too early; 2 if the settings or
the repository are invalid, or the port is in use. Exit codes of `check`: 0 if every model is valid,
1 if one is not, 2 for a wrong flag.
"""

from __future__ import annotations

import logging
import os
import signal
import sys


def _leave(*_: object) -> None:
    sys.exit(0)


def main() -> None:
    """Run the command that the arguments name, and exit."""
    # PID 1 of a container ignores signals without a handler, and imports take seconds: without
    # these handlers, a pod deleted during the start would stay for its whole grace period.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    from headroom_server import cli  # noqa: PLC0415 - see above

    code = cli.main(sys.argv[1:])
    if code:
        # what a lost GPU kept cannot be freed: torch would abort here, and the exit code be 134
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(0)


if __name__ == "__main__":
    main()
