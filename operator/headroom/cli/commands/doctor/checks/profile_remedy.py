"""Fields to set together so that a service reads the metrics of the server that runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.profiles.catalogue import PROFILES


def profile_remedy(runtime: Mapping[str, Any], actual: str, port: int | None = None) -> str:
    """Return the change of `spec.runtime` to the profile `actual` that the API accepts as a whole.

    `port`: where its metrics were found; None where the present port is right.
    """
    words = [f"spec.runtime.profile to {actual}", *_port(runtime, actual, port)]
    if actual != "headroom" and "maxBatchSize" not in runtime:
        words.append("spec.runtime.maxBatchSize to the server's own limit")
    not_allowed = [field for field in _not_allowed(actual) if field in runtime]
    removed = [f"remove spec.runtime.{field}" for field in not_allowed]
    return ", and ".join([f"set {', '.join(words)}", *removed])


def _port(runtime: Mapping[str, Any], actual: str, port: int | None) -> list[str]:
    if port is None:
        return []
    server = PROFILES[actual]
    if "metricsPort" in runtime or server.metrics_port is not None:
        known = runtime.get("metricsPort", server.metrics_port)
        return [] if known == port else [f"spec.runtime.metricsPort to {port}"]
    return [f"spec.runtime.port to {port}"]


def _not_allowed(actual: str) -> tuple[str, ...]:
    """Return the fields that the API refuses with this profile, which is not `custom`."""
    return ("metrics", "maxBatchSize") if actual == "headroom" else ("metrics",)
