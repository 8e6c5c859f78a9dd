"""A circuit breaker for an optional service that must never slow down requests. Pure.

    open ── a probe succeeds ──> closed ── FAILURES in a row ──> open

It starts open, so that no request waits for the first connection, and the first probe is due at
once. Each opening doubles the pause before the next probe until a lookup succeeds: a service that
answers probes but is too slow for lookups costs less and less.
"""

from __future__ import annotations

FAILURES = 3
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


class Breaker:
    """Closed: use the service. Open: do not, but probe it when due."""

    def __init__(self) -> None:
        self.closed = False
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._probe_at_s: float | None = float("-inf")

    def probe(self, now_s: float) -> bool:
        """Return whether to probe now; the caller must report the result with `probed`."""
        if self.closed or self._probe_at_s is None or now_s < self._probe_at_s:
            return False
        self._probe_at_s = None
        return True

    def probed(self, now_s: float, *, ok: bool) -> None:
        """Record the result of a probe."""
        if ok:
            self.closed, self._failures = True, 0
        else:
            self._open(now_s)

    def answered(self) -> None:
        """Record a lookup that was answered in time."""
        self._failures, self._pause_s = 0, FIRST_PAUSE_S

    def failed(self, now_s: float) -> bool:
        """Record a lookup that failed or was late; return whether that opened the breaker."""
        self._failures += 1
        if not self.closed or self._failures < FAILURES:
            return False
        self._open(now_s)
        return True

    def _open(self, now_s: float) -> None:
        self.closed = False
        self._probe_at_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
