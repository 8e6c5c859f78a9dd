"""`spec.scaling.zero`: when the last replica goes, where minReplicas is 0."""

from __future__ import annotations

from typing import Annotated

from headroom.api.durations import Duration
from headroom.api.values import Value, Within


class Zero(Value):
    """When the last replica goes. It comes back with the first request, which waits for it."""

    idle_for: Annotated[Duration, Within("10s", "24h")] = Duration.parse("10m")
    """Time without any request after which no replica is left, where minReplicas is 0."""
