"""A cluster in which nothing happens, for routers whose writes and probes do not matter."""

from __future__ import annotations

from typing import Any


class IdleCluster:
    """API, clock and probe at once: no slices, time 0, no listener."""

    async def list_all(self, *_: Any) -> list[Any]:
        return []

    def now_s(self) -> float:
        return 0.0

    async def is_open(self, address: str, port: int) -> bool:
        return False

    async def get(self, *_: Any) -> dict[str, Any]:
        return {"metadata": {"name": "other"}}
