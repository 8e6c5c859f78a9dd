"""One request through the fault proxy: its content, time and answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

from reliability.fault_proxy.calls import Call
from reliability.fault_proxy.rules import (
    Fault,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its outcome."""

    at_s: float
    """Time when it arrived, by the monotonic clock."""
    call: Call
    code: int
    """Status code of the API server; 0 where it was not asked or did not answer."""
    fault: Fault | None = None
    sent: bytes = b""
    """The body of a write."""
    version: int = 0
    """resourceVersion that a write which was taken gave its object."""

    @property
    def taken(self) -> bool:
        """Return whether it changed the cluster."""
        return self.call.writes and 200 <= self.code < 300

    @property
    def name(self) -> str:
        """Return the name of the object; a creation has it only in its body."""
        if self.call.name or not self.sent:
            return self.call.name
        body = json.loads(self.sent)
        return str(body["metadata"].get("name", "")) if isinstance(body, dict) else ""

    @property
    def replicas(self) -> int | None:
        """Return the replicas that a write requests, if it sets them."""
        if not self.call.resource.startswith("deployments") or not self.sent:
            return None
        body = json.loads(self.sent)
        spec = body.get("spec", {}) if isinstance(body, dict) else {}
        return spec.get("replicas") if isinstance(spec, dict) else None


def given_version(answer: bytes) -> int:
    """Read what a write was numbered; 0 where the answer does not say."""
    try:
        return int(json.loads(answer)["metadata"]["resourceVersion"])
    except (ValueError, KeyError, TypeError):
        return 0
