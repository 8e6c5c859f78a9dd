"""`python -m reliability.attacks.probe HOST PORT PATH...`: a kubelet's probes, until SIGTERM.

It runs in a process of its own, so that the attackers' work does not count as waiting. It prints a
line when it begins, and at the end each probe: its seconds, and why it was not answered with 200.
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


def ask(host: str, port: int, path: str) -> tuple[float, str]:
    """Return the seconds until a new connection's probe is answered with 200, or why it is not."""
    begun_s = time.monotonic()
    one = http.client.HTTPConnection(
        host, port, timeout=GIVEN_UP_S, source_address=(OWN_ADDRESS, 0)
    )
    try:
        one.request("GET", path, headers={"Connection": "close"})
        status = one.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        why = f"{path}: {error!r:.100} after {time.monotonic() - begun_s:.1f} s"
        return float("inf"), why
    finally:
        one.close()
    if status != 200:
        return float("inf"), f"{path}: status {status}"
    return time.monotonic() - begun_s, ""


def main(host: str, port: str, *paths: str) -> int:
    """Probe, and print the seconds of each probe."""

    def stop(_: int, __: FrameType | None) -> None:
        raise _Stop

    signal.signal(signal.SIGTERM, stop)
    found: list[tuple[float, str]] = []
    begun_s = None
    print("begun", flush=True)
    try:
        while True:
            for path in paths:
                begun_s = time.monotonic()
                found.append(ask(host, int(port), path))
                begun_s = None
            time.sleep(EVERY_S)
    except _Stop:
        if begun_s is not None:  # it waits for at least as long
            found.append((time.monotonic() - begun_s, ""))
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
