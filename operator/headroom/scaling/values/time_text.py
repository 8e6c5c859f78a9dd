"""Times as text for people."""

from __future__ import annotations

import math


def format_seconds(seconds: float) -> str:
    """Return seconds as text for people: 150ms, 2.5s."""
    if math.isinf(seconds):
        return "unbounded"
    return f"{1000 * seconds:.3g}ms" if seconds < 0.9995 else f"{seconds:.3g}s"
