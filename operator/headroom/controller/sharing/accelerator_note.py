"""Note of a leader in the Lease for the next one: accelerators by namespace. No I/O.

A new process knows nothing of a namespace that it cannot read, and its replicas hold accelerators
all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

MOST_BYTES = 64 << 10
"""Largest annotation; namespaces that are watched by name have 90 bytes each at most."""


@dataclass(slots=True)
class AcceleratorNote:
    """Accelerators that the services of a namespace hold, as the Lease has them and as they are."""

    text: str = ""
    """Annotation as last read from the Lease."""
    held: Mapping[str, int] | None = None
    """Accelerators that this process counts; None before it has counted."""

    def known(self, namespace: str) -> int:
        """Return an earlier leader's count of a namespace; 0 where it left none."""
        try:
            counts = orjson.loads(self.text or "{}")
        except orjson.JSONDecodeError:
            return 0
        count = counts.get(namespace) if isinstance(counts, dict) else None
        return max(0, count) if isinstance(count, int) else 0

    def written(self) -> str:
        """Return the annotation for the Lease; empty to leave it as it is."""
        if self.held is None:
            return ""
        counts = {namespace: count for namespace, count in self.held.items() if count}
        text = orjson.dumps(counts, option=orjson.OPT_SORT_KEYS).decode()
        return text if len(text) <= MOST_BYTES else ""
