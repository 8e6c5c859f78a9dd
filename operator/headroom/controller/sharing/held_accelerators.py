"""Accelerators that each service holds, in total and by namespace. No I/O."""

from __future__ import annotations

from collections import Counter


class HeldAccelerators:
    """Accelerators by service UID, or by `NAMESPACE/` where a namespace cannot be read."""

    def __init__(self) -> None:
        self.by_namespace: Counter[str] = Counter()
        self._held: dict[str, int] = {}
        self._namespaces: dict[str, str] = {}
        """Namespaces of what holds some, by the same keys."""
        self._total = 0

    def __contains__(self, uid: str) -> bool:
        """Return whether a count of this service is known."""
        return uid in self._held

    def of(self, uid: str) -> int:
        """Return the accelerators of a service."""
        return self._held.get(uid, 0)

    def by_others(self, uid: str) -> int:
        """Return the accelerators of all other services."""
        return self._total - self.of(uid)

    def set(self, uid: str, namespace: str, accelerators: int) -> None:
        """Set the accelerators of a service."""
        more = accelerators - self.of(uid)
        self._total += more
        self.by_namespace[namespace] += more
        self._held[uid], self._namespaces[uid] = accelerators, namespace

    def forget(self, uid: str) -> None:
        """Remove a service, if it is known."""
        if uid in self._held:
            self.set(uid, self._namespaces[uid], 0)
            del self._held[uid], self._namespaces[uid]
