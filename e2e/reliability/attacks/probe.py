"""`python -m reliability.attacks.probe HOST PORT PATH...`: a kubelet's probes, until SIGTERM.

It runs in a process of its own, so that the attackers' work does not count as waiting.
"""

from __future__ import annotations

import http.client
import json
import signal
import sys
import time
from types import FrameType

EVERY_S = 0.5
GIVEN_UP_S = 20.0
OWN_ADDRESS = "127.0.0.2"
"""A kubelet's address is no client's."""


class _Stop(Exception):  # noqa: N818  (a signal)
    """SIGTERM."""


def ask_s(host: str, port: int, path: str) -> float:
    """Return the seconds until a new connection's probe is answered with 200; infinite if not."""
    begun_s = time.monotonic()
    one = http.client.HTTPConnection(
        host, port, timeout=GIVEN_UP_S, source_address=(OWN_ADDRESS, 0)
    )
    try:
        one.request("GET", path, headers={"Connection": "close"})
        status = one.getresponse().status
    except (OSError, http.client.HTTPException):
        return float("inf")
    finally:
        one.close()
    return time.monotonic() - begun_s if status == 200 else float("inf")


def main(host: str, port: str, *paths: str) -> int:
    """Probe, and print the seconds of each probe."""

    def stop(_: int, __: FrameType | None) -> None:
        raise _Stop

    signal.signal(signal.SIGTERM, stop)
    waited: list[float] = []
    try:
        while True:
            waited += [ask_s(host, int(port), path) for path in paths]
            time.sleep(EVERY_S)
    except _Stop:
        print(json.dumps(waited))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
