"""The API behind the lease: reads pass, and a write is sent only while the lease is held.

A process may sleep between the check of the lease and the write. The API server rejects such a
write: every write to a shared object carries the version that was read, or creates the object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from headroom.controller.ports import Cluster, Manifest
from headroom.errors import NotLeading


class Lease(Protocol):
    """Lease, as far as a write needs it."""

    def remaining_s(self) -> float:
        """Return the longest time of a write from now; 0: none may begin."""
        ...


class LeasedCluster:
    """A Cluster whose writes end before the lease does. They may raise NotLeading."""

    def __init__(self, cluster: Cluster, lease: Lease) -> None:
        self._cluster = cluster
        self._lease = lease

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        """Read one object."""
        return await self._cluster.get(api_version, kind, namespace, name)

    async def list_all(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
    ) -> list[Manifest]:
        """Read all objects of a kind."""
        return await self._cluster.list_all(api_version, kind, namespace, label_selector, kept)

    async def list_at(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
        left_out: Callable[[Manifest], None] | None = None,
    ) -> tuple[list[Manifest], str]:
        """Read all objects of a kind, and the version of the answer."""
        return await self._cluster.list_at(
            api_version, kind, namespace, label_selector, kept, left_out
        )

    async def get_scale(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        """Read an object's scale."""
        return await self._cluster.get_scale(api_version, kind, namespace, name)

    async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """POST."""
        async with self._leading():
            return await self._cluster.create(manifest, field_manager=field_manager)

    async def apply(
        self, manifest: Manifest, *, field_manager: str, dry_run: bool = False
    ) -> Manifest:
        """Apply server-side."""
        async with self._leading():
            return await self._cluster.apply(manifest, field_manager=field_manager, dry_run=dry_run)

    async def apply_status(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """Apply the status subresource."""
        async with self._leading():
            return await self._cluster.apply_status(manifest, field_manager=field_manager)

    async def apply_scale(
        self, deployment: Manifest, replicas: int, *, field_manager: str
    ) -> Manifest:
        """Write replicas through /scale."""
        async with self._leading():
            return await self._cluster.apply_scale(
                deployment, replicas, field_manager=field_manager
            )

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Evict a pod."""
        async with self._leading():
            await self._cluster.evict(namespace, name, uid)

    async def json_patch(
        self, manifest: Manifest, operations: list[Manifest], *, field_manager: str
    ) -> Manifest:
        """Patch with RFC 6902 operations."""
        async with self._leading():
            return await self._cluster.json_patch(manifest, operations, field_manager=field_manager)

    @asynccontextmanager
    async def _leading(self) -> AsyncIterator[None]:
        """End calls that last longer than the lease; it may be renewed meanwhile."""
        loop = asyncio.get_running_loop()
        left_s = self._lease.remaining_s()
        if left_s <= 0.0:
            raise NotLeading("the lease is not held any more: nothing was written")
        timer: asyncio.TimerHandle

        def look_again() -> None:
            nonlocal timer
            left_s = self._lease.remaining_s()
            if left_s > 0.0:
                timer = loop.call_later(left_s, look_again)
            else:
                deadline.reschedule(loop.time())

        timer = loop.call_later(left_s, look_again)
        try:
            async with asyncio.timeout(None) as deadline:
                yield
        except TimeoutError:
            raise NotLeading("the lease ran out before the API server answered a write") from None
        finally:
            timer.cancel()
