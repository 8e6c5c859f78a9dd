"""Drains the gateway before its container stops: closes idle connections, waits for requests.

New connections go to the other gateways as soon as the pod terminates.
"""

import re
import sys
import time
from http.client import HTTPException

from envoy_admin import ask

ADMIN = "@headroom-admin"
ENDPOINTS_CATCH_UP_S = 2.0
TIMEOUT_S = 25.0


def main(admin: str = ADMIN) -> None:
    """Return when no request is in flight, or after the timeout."""
    until_s = time.monotonic() + TIMEOUT_S
    try:
        time.sleep(ENDPOINTS_CATCH_UP_S)
        ask(admin, "/drain_listeners?graceful&skip_exit", "POST")
        while time.monotonic() < until_s:
            page = ask(admin, r"/stats?filter=^http\.(?!admin|ops).*downstream_cx_active$")
            if not any(int(number) for number in re.findall(rb": (\d+)$", page, re.MULTILINE)):
                return
            time.sleep(0.2)
    except (HTTPException, OSError) as error:
        print(f"Envoy does not respond: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
