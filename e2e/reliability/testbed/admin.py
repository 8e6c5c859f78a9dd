"""The administrator's client of the API server: bypasses the proxy and the code under test."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
_EVENT_BYTES = 1 << 22


class Refused(Exception):  # noqa: N818  (what the API server did)
    """The API server did not do what it was asked; `code` is its status."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{words} ({code})")
        self.code = code


class Admin:
    """Use as an async context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.server: str = cluster["server"]
        self.authority_pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._token: str = config["users"][0]["user"]["token"]

    async def __aenter__(self) -> Self:
        """Open the connections."""
        tls = ssl.create_default_context(cadata=self.authority_pem)
        self._session = aiohttp.ClientSession(
            self.server,
            connector=aiohttp.TCPConnector(ssl=tls, limit=64),
            headers={"Authorization": f"Bearer {self._token}"},
            read_bufsize=_EVENT_BYTES,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._session.close()

    async def get(self, path: str, **query: str) -> Object:
        """Read; raise Refused."""
        return await self._ask("GET", path, query=query)

    async def find(self, path: str) -> Object | None:
        """Read; None where it is not there."""
        try:
            return await self.get(path)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    async def create(self, path: str, body: Object) -> Object:
        """POST to a collection."""
        return await self._ask("POST", path, body=body)

    async def patch(self, path: str, body: Object, kind: str = MERGE) -> Object:
        """Patch an object or a subresource of it."""
        query = {"fieldManager": "test", "force": "true"} if kind == APPLY else {}
        return await self._ask("PATCH", path, body=body, kind=kind, query=query)

    async def delete(self, path: str, grace_s: int | None = None) -> None:
        """Delete; what is gone already is no fault."""
        query = {} if grace_s is None else {"gracePeriodSeconds": str(grace_s)}
        try:
            await self._ask("DELETE", path, query=query)
        except Refused as error:
            if error.code != 404:
                raise

    async def watch(self, path: str) -> AsyncIterator[Object]:
        """Return the events of a collection, those of what is there first, until it ends."""
        query = {"watch": "true", "allowWatchBookmarks": "false"}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, params=query, timeout=timeout) as stream:
            while line := await stream.content.readline():
                yield json.loads(line)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        body: Object | None = None,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind}
        async with self._session.request(
            method, path, data=data, headers=headers, params=query
        ) as answer:
            text = await answer.text()
            if answer.status >= 300:  # a kind that is not served yet is refused in plain text
                raise Refused(answer.status, f"{method} {path}: {text[:1000]}")
            return dict(json.loads(text))
