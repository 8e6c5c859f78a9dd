"""The kubelet's startup, readiness and liveness probes of the model server."""

from __future__ import annotations

import math
from typing import Any

from headroom.api import Duration
from headroom.resources import names

_START_MARGIN_S = 30
"""Margin after the warm-up timeout: the server exits with the reason before
the kubelet restarts it."""


def startup(path: str, timeout: Duration) -> dict[str, Any]:
    """Return a probe that waits for the warm-up until its timeout has passed.

    A period of one second makes a warm replica serve at once; for warm-ups longer than ten minutes
    the period is up to 5 s.
    """
    period_s = min(5, max(1, math.ceil(timeout.seconds / 600)))
    threshold = math.ceil((timeout.seconds + _START_MARGIN_S) / period_s)
    return _probe(path, period_s=period_s, timeout_s=2, failures=threshold)


def readiness(path: str) -> dict[str, Any]:
    """Return a probe with three allowed failures, so that one slow answer does not shift load."""
    return _probe(path, period_s=1, timeout_s=2, failures=3)


def liveness(path: str) -> dict[str, Any]:
    """Return a probe of the event loop: load never fails it, a minute without an answer does."""
    return _probe(path, period_s=10, timeout_s=5, failures=6)


def _probe(path: str, *, period_s: int, timeout_s: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": names.PORT_NAME, "scheme": "HTTP"},
        "periodSeconds": period_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": failures,
        "successThreshold": 1,
    }
