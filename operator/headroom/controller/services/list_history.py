"""Detects that versions of LISTs went back for good: etcd was restored from a backup. Pure.

An API server that lags is behind by seconds, and catches up; the versions of a restored etcd
continue from those of the backup, and may need hours to reach those that were seen before.
"""

from __future__ import annotations

from dataclasses import dataclass

RESTORED_AFTER_S = 60.0


@dataclass(slots=True)
class ListHistory:
    """The versions of the LISTs of one namespace, or of all."""

    _newest: int = 0
    """Version of the last LIST that was not behind."""
    _behind_since_s: float | None = None

    def is_restored(self, version: str, now_s: float) -> bool:
        """Process a LIST; return whether it counts although it is older than others were.

        All LISTs of the last minute, two or more, were older than one before them. Worked: a server
        that lags by 10 s is behind at one or two LISTs in a row, 5 s apart.
        """
        if not version.isdigit():
            return False
        if int(version) >= self._newest:
            self._newest, self._behind_since_s = int(version), None
            return False
        if self._behind_since_s is None:
            self._behind_since_s = now_s
        if now_s - self._behind_since_s < RESTORED_AFTER_S:
            return False
        self._newest, self._behind_since_s = int(version), None
        return True
