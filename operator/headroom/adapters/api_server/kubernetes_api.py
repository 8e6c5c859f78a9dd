"""The verbs of the Kubernetes API on plain JSON: get, list, create, apply, scale, evict, patch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self

from headroom.adapters.api_server.kept_parts import kept_parts
from headroom.adapters.api_server.kubernetes_connection import (
    MAX_ANSWER_BYTES,
    KubernetesConnection,
)
from headroom.adapters.api_server.kubernetes_discovery import PathFinder
from headroom.adapters.api_server.kubernetes_lists import ListPages
from headroom.adapters.api_server.kubernetes_paths import path_of, path_to
from headroom.adapters.api_server.kubernetes_responses import (
    Fetched,
    leave_out_managed_fields,
    object_of,
)
from headroom.errors import Rejected
from headroom.event_loop_shares import EventLoopShares

Manifest = dict[str, Any]

_PAGE = 100
"""Objects per page of a list, at most."""
_LONG_PAGE = 500
"""The same in a list for one service."""

_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"

_SCALED_BY_APPLY = frozenset({"apps/v1"})
_NO_REPLICAS = b"the spec replicas field"
"""Part of the API server's message."""


class KubernetesApi:
    """Client of one API server. Use as an async context manager."""

    def __init__(
        self, connection: KubernetesConnection, shares: EventLoopShares | None = None
    ) -> None:
        """`shares` are those of the event loop between namespaces."""
        self._connection = connection
        self._pages = ListPages(connection, shares or EventLoopShares())
        self._paths = PathFinder(connection)

    @property
    def namespace(self) -> str:
        """Namespace of the context, once opened."""
        return self._connection.namespace

    async def __aenter__(self) -> Self:
        """Connect; raise Forbidden without credentials."""
        await self._connection.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self._connection.__aexit__(kind, error, trace)

    async def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Manifest:
        """Read one object; a namespace of None means cluster scope."""
        path = await self._paths.path(api_version, kind, namespace, name)
        return await self._connection.request("GET", "get", path)

    async def get_scale(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        """Read an object's scale.

        The API server returns 500 if the object has no replicas field, which becomes Rejected.
        """
        path = f"{await self._paths.path(api_version, kind, namespace, name)}/scale"
        found = await self._connection.answer("GET", "get_scale", path)
        if found.status == 500 and _NO_REPLICAS in found.body:
            raise Rejected(f"{path}: the object must have its replicas field: set it once")
        return object_of(found, f"GET {path}")

    async def fetch(self, path: str, most_bytes: int = MAX_ANSWER_BYTES) -> Fetched:
        """GET any path of the server; raise Unavailable without a response."""
        return await self._connection.fetch(path, most_bytes)

    def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        """GET a stream, as `KubernetesConnection.stream` does."""
        return self._connection.stream(path, quiet_s)

    async def list_all(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
    ) -> list[Manifest]:
        """Read all objects of a kind that match the selector, as far as `kept` keeps them.

        It is called for each object while pages are read; what it raises ends the list.
        """
        query = {"labelSelector": label_selector} if label_selector else {}
        path = path_to(api_version, kind, namespace)

        def parts(one: Manifest) -> Manifest | None:
            return kept(kept_parts(kind, one))

        found: list[Manifest] = []
        async for page in self._pages.read(path, query, _LONG_PAGE, namespace, parts):
            found += page.objects
        return found

    async def list_at(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
        left_out: Callable[[Manifest], None] | None = None,
    ) -> tuple[list[Manifest], str]:
        """Read the objects that match the selector, and the list's resourceVersion.

        `kept` may replace each object by a known equal one, or None, page by page. `left_out` takes
        the metadata of each object that is too large to be read; without it, AnswerTooLarge.

        An API server that lags behind returns old objects, which only this version reveals. All
        pages are of this version; managedFields are removed. A page requested too late (410) is
        Unavailable.
        """
        path = path_to(api_version, kind, namespace)
        query = {"labelSelector": label_selector} if label_selector else {}

        def parts(one: Manifest) -> Manifest | None:
            leave_out_managed_fields(one)
            return kept(kept_parts(kind, one))

        found: list[Manifest] = []
        version = ""
        pages = self._pages.read(
            path, query, _PAGE, namespace, parts, leaves_out=left_out is not None
        )
        async for page in pages:
            found += page.objects
            version = page.version
            if left_out is not None and page.left_out is not None:
                left_out(page.left_out)
        return found, version

    async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """POST an object; without a namespace it is cluster-scoped."""
        namespace = manifest.get("metadata", {}).get("namespace")
        path = path_to(manifest["apiVersion"], manifest["kind"], namespace)
        query = {"fieldManager": field_manager}
        return await self._connection.request("POST", "create", path, query=query, body=manifest)

    async def replace(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """PUT an object; with a resourceVersion it is a compare-and-swap."""
        query = {"fieldManager": field_manager}
        return await self._connection.request(
            "PUT", "replace", path_of(manifest), query=query, body=manifest
        )

    async def apply(
        self, manifest: Manifest, *, field_manager: str, dry_run: bool = False
    ) -> Manifest:
        """Apply server-side with force: the operator owns the fields."""
        query = {"fieldManager": field_manager, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        path = path_of(manifest)
        return await self._connection.request(
            "PATCH", "apply", path, _APPLY, query=query, body=manifest
        )

    async def apply_status(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """Apply the status subresource server-side."""
        query = {"fieldManager": field_manager, "force": "true"}
        path = f"{path_of(manifest)}/status"
        return await self._connection.request(
            "PATCH", "apply_status", path, _APPLY, query=query, body=manifest
        )

    async def apply_scale(
        self, deployment: Manifest, replicas: int, *, field_manager: str
    ) -> Manifest:
        """Apply /scale server-side, at the resourceVersion at which the Deployment was read.

        An apply records a field manager, so that a later `kubectl scale` shows as another one. For
        a custom resource it returns 500 (tried with Kubernetes 1.36), so that a PUT is used.
        """
        metadata, api_version = deployment["metadata"], deployment["apiVersion"]
        scale = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "spec": {"replicas": replicas},
        }
        path = await self._paths.path(
            api_version, deployment["kind"], metadata["namespace"], metadata["name"]
        )
        path, query = f"{path}/scale", {"fieldManager": field_manager}
        if api_version not in _SCALED_BY_APPLY:
            return await self._connection.request("PUT", "put_scale", path, query=query, body=scale)
        query["force"] = "true"
        return await self._connection.request(
            "PATCH", "apply_scale", path, _APPLY, query=query, body=scale
        )

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """POST an eviction, which respects PodDisruptionBudgets, of the pod with this UID."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"{path_to('v1', 'Pod', namespace, name)}/eviction"
        await self._connection.request("POST", "evict", path, body=body)

    async def json_patch(
        self, manifest: Manifest, operations: list[Manifest], *, field_manager: str
    ) -> Manifest:
        """Patch with RFC 6902 operations, all or none."""
        query = {"fieldManager": field_manager}
        path = path_of(manifest)
        return await self._connection.request(
            "PATCH", "json_patch", path, _JSON_PATCH, query=query, body=operations
        )
