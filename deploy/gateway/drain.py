"""Drains the gateway before its container stops: closes idle connections, waits for requests.

New connections go to other gateways, or to replicas where the gateways are removed, once the
operator has changed the Services and the nodes follow: as long as requests arrive, some do not yet.
"""

import re
import sys
import time
from http.client import HTTPException

from envoy_admin import ask

ADMIN = "@headroom-admin"
ENDPOINTS_CATCH_UP_S = 2.0
QUIET_S = 2.0
"""No request arrives for so long: no client is led here any more."""
TIMEOUT_S = 25.0
_PAGE = r"/stats?filter=^http\..*\.downstream_(cx_active|rq_total)$"
"""Envoy's expressions know no lookahead."""
_OF_CLIENTS = re.compile(rb"^http\.(?!(?:admin|ops)\.)(.*)\.downstream_(\w+): (\d+)$", re.MULTILINE)


def main(admin: str = ADMIN) -> None:
    """Return when no request is in flight or arrives, or after the timeout."""
    until_s = time.monotonic() + TIMEOUT_S
    try:
        time.sleep(ENDPOINTS_CATCH_UP_S)
        ask(admin, "/drain_listeners?graceful&skip_exit", "POST")
        before, since_s = None, time.monotonic()
        while time.monotonic() < until_s:
            counts = _OF_CLIENTS.findall(ask(admin, _PAGE))
            active = any(name == b"cx_active" and int(number) for _, name, number in counts)
            if counts != before or active:
                before, since_s = counts, time.monotonic()
            elif time.monotonic() - since_s >= QUIET_S:
                return
            time.sleep(0.2)
    except (HTTPException, OSError) as error:
        print(f"Envoy does not respond: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
