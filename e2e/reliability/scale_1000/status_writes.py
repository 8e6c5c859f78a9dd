"""Collects the times of the operator's status writes, as a watch sees them."""

from __future__ import annotations

import asyncio
import time

from reliability.testbed.admin import Admin, Object, Refused

_SERVICES = "/apis/headroom.dev/v1alpha1/inferenceservices"


class StatusWrites:
    """Collects the moments of the operator's writes of status."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._versions: dict[str, str] = {}
        self.moments_s: list[float] = []

    async def run(self) -> None:
        """Follow the watch until cancelled."""
        while not await self._is_served():  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        while True:
            async for event in self._admin.watch(_SERVICES):
                self._on_event(event["object"])

    def since(self, moment_s: float) -> int:
        """Return the number of writes since a moment."""
        return sum(1 for one in self.moments_s if one >= moment_s)

    def _on_event(self, service: Object) -> None:
        name, status = service["metadata"]["name"], service.get("status") or {}
        decided = (status.get("decision") or {}).get("time", "")
        version = service["metadata"]["resourceVersion"]
        if not decided or self._versions.get(name) == version:
            return
        known = name in self._versions
        self._versions[name] = version
        if known:
            self.moments_s.append(time.monotonic())

    async def _is_served(self) -> bool:
        """Return whether the new kind can be listed: its storage takes a moment."""
        try:
            await self._admin.get(_SERVICES)
        except Refused:
            return False
        return True
