"""When a replica is started, ready and alive, as the kubelet asks the model server."""

from __future__ import annotations

import math
from typing import Any

from headroom.api import Duration
from headroom.resources import names

_START_MARGIN_S = 30
"""The server gives up at the warm-up timeout by itself and says why; only then does the kubelet
restart it."""


def startup(path: str, timeout: Duration) -> dict[str, Any]:
    """Ask for warmth until the timeout has surely passed.

    Asked each second, a warm replica serves at once; warm-ups above ten minutes are asked up to
    five times less often.
    """
    period_s = min(5, max(1, math.ceil(timeout.seconds / 600)))
    threshold = math.ceil((timeout.seconds + _START_MARGIN_S) / period_s)
    return _probe(path, period_s=period_s, timeout_s=2, failures=threshold)


def readiness(path: str) -> dict[str, Any]:
    """Ask for warmth; three refusals, so that one slow answer does not shift load to the others."""
    return _probe(path, period_s=1, timeout_s=2, failures=3)


def liveness(path: str) -> dict[str, Any]:
    """Ask whether the event loop turns; load never fails it, a minute without an answer does."""
    return _probe(path, period_s=10, timeout_s=5, failures=6)


def _probe(path: str, *, period_s: int, timeout_s: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": names.PORT_NAME, "scheme": "HTTP"},
        "periodSeconds": period_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": failures,
        "successThreshold": 1,
    }
