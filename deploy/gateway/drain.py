"""Drains the gateway before its container stops: closes idle connections, waits for requests.

New connections go to the other gateways as soon as the pod terminates.
"""

import re
import time
from urllib.error import URLError
from urllib.request import Request, urlopen

ADMIN = "http://127.0.0.1:9901"
ENDPOINTS_CATCH_UP_S = 2.0
TIMEOUT_S = 25.0


def ask(path: str, method: str = "GET") -> str:
    """Send a request to Envoy's admin interface, which listens on loopback only."""
    with urlopen(Request(ADMIN + path, method=method), timeout=2) as answer:  # noqa: S310
        return str(answer.read().decode())


def main() -> None:
    """Return when no request is in flight, or after the timeout."""
    until_s = time.monotonic() + TIMEOUT_S
    try:
        time.sleep(ENDPOINTS_CATCH_UP_S)
        ask("/drain_listeners?graceful&skip_exit", "POST")
        while time.monotonic() < until_s:
            page = ask(r"/stats?filter=^http\.(?!admin|ops).*downstream_cx_active$")
            if not any(int(number) for number in re.findall(r": (\d+)$", page, re.MULTILINE)):
                return
            time.sleep(0.2)
    except (URLError, OSError) as error:
        print(f"Envoy does not respond: {error}", flush=True)


if __name__ == "__main__":
    main()
