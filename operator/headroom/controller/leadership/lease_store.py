"""Reads and writes the Lease; a response that is not a Lease counts as Unavailable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from headroom.controller.leadership.record import API_VERSION, KIND, LeaseRecord
from headroom.errors import NotFound, Unavailable

FIELD_MANAGER = "headroom-lease"


class Leases(Protocol):
    """Methods of the Kubernetes API for the Lease."""

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """Read one object; raise NotFound where it is not."""
        ...

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """POST; raise Conflict where an object of that name exists."""
        ...

    async def replace(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """PUT; raise Conflict unless the object has the version that the manifest carries."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStore:
    """The Lease of this namespace and name."""

    leases: Leases
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return its name for the log."""
        return f"{self.namespace}/{self.name}"

    async def read(self) -> LeaseRecord | None:
        """Return the Lease; None where there is none. Raises ClusterError."""
        try:
            lease = await self.leases.get(API_VERSION, KIND, self.namespace, self.name)
        except NotFound:
            return None
        return _parsed(lease)

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write the Lease at its version, or create it; return it. Raises ClusterError."""
        manifest = record.manifest(self.namespace, self.name)
        write = self.leases.replace if record.version else self.leases.create
        stored = _parsed(await write(manifest, field_manager=FIELD_MANAGER))
        if stored.holder != record.holder:
            raise Unavailable(f"the API server says that {stored.holder!r:.80} holds it")
        return stored


def _parsed(lease: dict[str, Any]) -> LeaseRecord:
    try:
        return LeaseRecord.parse(lease)
    except ValueError as error:
        raise Unavailable(f"the answer is no Lease: {error}") from error
