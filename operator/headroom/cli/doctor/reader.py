"""What the doctor asks of the API server: the adapter fits by structure."""

from __future__ import annotations

from typing import Any, Protocol


class Fetched(Protocol):
    """An answer as it came."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def body(self) -> bytes:
        """The body."""
        ...

    @property
    def date(self) -> str:
        """The server's time, as HTTP writes it; may be empty."""
        ...


class Reader(Protocol):
    """The API server, read only but for reviews, which change nothing."""

    async def get(
        self, api_version: str, kind: str, namespace: str | None, name: str
    ) -> dict[str, Any]:
        """Read one object; raise NotFound where it is not."""
        ...

    async def list_all(
        self, api_version: str, kind: str, namespace: str | None, label_selector: str = ""
    ) -> list[dict[str, Any]]:
        """Read all objects of a kind."""
        ...

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """POST, for reviews."""
        ...

    async def fetch(self, path: str) -> Fetched:
        """GET any path."""
        ...
