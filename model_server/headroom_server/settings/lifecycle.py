"""Settings: warm-up and drain. Pure."""

from __future__ import annotations

from pydantic import Field

from headroom_server.settings.fields import Group, Seconds, SecondsOrNone


class LifecycleSettings(Group):
    """Warm-up and drain."""

    warmup_requests: int = Field(16, ge=1, le=1_000_000)
    """Minimum number of warm-up requests, over all shapes."""
    warmup_max_latency_s: Seconds = 1.0
    """Maximum p95 of single requests in the self-test, in seconds."""
    warmup_timeout_s: Seconds = 600.0
    """Maximum time from start to ready."""
    drain_delay_s: SecondsOrNone = 2.0
    """Time for which requests are accepted after SIGTERM, because endpoints take a moment to
    update."""
    drain_grace_s: Seconds = 60.0
    """Time that accepted requests may take to finish after that."""
