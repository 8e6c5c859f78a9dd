"""The Kubernetes API as plain JSON, over the official client's connection and credentials.

Only ApiClient and the configuration of `kubernetes.aio` are used: its typed API classes cost 188
MB. Every request has a deadline, and every error is translated into `headroom.errors`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from headroom.adapters.http_session import read_start
from headroom.adapters.kept_parts import kept_parts
from headroom.adapters.kubernetes_credentials import load_credentials
from headroom.adapters.kubernetes_paths import PLURALS, located, path_of, path_to, root
from headroom.adapters.kubernetes_responses import (
    Fetched,
    error_of,
    items_of,
    leave_out_managed_fields,
    object_of,
)
from headroom.adapters.redaction import bare, sent_in
from headroom.errors import AnswerTooLarge, NotFound, Rejected, Unavailable
from headroom.fair_slots import FairSlots

Manifest = dict[str, Any]

DEADLINE_S = 6.0
"""Short enough that a hanging request does not delay the next tick for long after a fault."""
CONNECTIONS = 1100
"""A watch for each of 1000 targets in Gateway mode, and 100 for requests."""
_HELD = "; an admission webhook may delay it: its timeoutSeconds must be shorter"
_PAGE = 100
"""Objects per page of a list: some MB, and five times as much when parsed."""

_LONG_PAGE = 500
"""Objects per page of a list for one service."""
MAX_ANSWER_BYTES = 4 << 20
"""Tenants decide how large their objects are, up to 1.5 MB: 100 services of that size are 135 MB. A
page above this bound is read again with fewer objects. Parsed, it takes 20 MB."""
LISTS_AT_ONCE = 4
"""Pages of lists under way, 16 MiB; a namespace has at most half of them."""

_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"
_HEADERS = {"Accept": _JSON, "Accept-Encoding": "identity", "User-Agent": "headroom"}
"""No compression: for a LIST it would cost both sides more CPU than 1 MB/s is worth."""
_JSON_PATCH = "application/json-patch+json"

_SCALED_BY_APPLY = frozenset({"apps/v1"})
_NO_REPLICAS = b"the spec replicas field"
"""Part of the API server's message."""


class OnCall(Protocol):
    """Callback with the outcome of one request."""

    def __call__(self, verb: str, code: str, seconds: float) -> None:
        """Count it; `code` is the HTTP status or the kind of failure."""
        ...


class KubernetesApi:
    """Client of one API server. Use as an async context manager."""

    def __init__(
        self,
        on_call: OnCall,
        deadline_s: float = DEADLINE_S,
        environment: Mapping[str, str] = os.environ,
        kubeconfig: str | None = None,
        context: str | None = None,
    ) -> None:
        self._environment = environment
        self._kubeconfig = kubeconfig
        self._context = context
        self.namespace = "default"
        """Namespace of the context, once opened."""
        self._on_call = on_call
        self._deadline_s = deadline_s
        self._timeout = aiohttp.ClientTimeout(total=deadline_s)
        self._client: ApiClient | None = None
        self._lists = FairSlots(LISTS_AT_ONCE)
        self._plurals: dict[tuple[str, str], str] = {}
        """Discovered plurals by apiVersion and kind."""

    async def __aenter__(self) -> Self:
        """Read credentials from the given file, KUBECONFIG, the pod, or ~/.kube/config.

        Raises Forbidden if there are none.
        """
        configuration = Configuration()
        self.namespace = await load_credentials(
            configuration, self._environment, self._kubeconfig, self._context
        )
        configuration.client_session_kwargs = {
            "trust_env": False,
            "cookie_jar": aiohttp.DummyCookieJar(),
        }
        configuration.connection_pool_maxsize = CONNECTIONS
        self._client = ApiClient(configuration)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        assert self._client is not None
        await self._client.close()  # type: ignore[no-untyped-call]

    async def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Manifest:
        """Read one object; a namespace of None means cluster scope."""
        path = await self._found(api_version, kind, namespace, name)
        return await self._request("GET", "get", path)

    async def get_scale(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        """Read an object's scale.

        The API server returns 500 if the object has no replicas field, which becomes Rejected.
        """
        path = f"{await self._found(api_version, kind, namespace, name)}/scale"
        found = await self._answer("GET", "get_scale", path)
        if found.status == 500 and _NO_REPLICAS in found.body:
            raise Rejected(f"{path}: the object must have its replicas field: set it once")
        return object_of(found, f"GET {path}")

    async def fetch(self, path: str) -> Fetched:
        """GET any path of the server; raise Unavailable without a response."""
        return await self._answer("GET", "fetch", path)

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        """GET a stream, and yield its pieces until it ends.

        Raises Unavailable if it breaks or is silent for `quiet_s`, and the error of its status.
        """
        assert self._client is not None
        headers = dict(_HEADERS)
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=quiet_s, sock_read=quiet_s)
        url = self._client.configuration.host + path
        try:
            answer = await self._client.rest_client.request(  # type: ignore[no-untyped-call]
                "GET", url, headers=headers, _request_timeout=timeout
            )
            try:
                if answer.status >= 300:
                    raise error_of(answer.status, await answer.read(), "", f"GET {path}")
                async for piece in answer.response.content.iter_any():
                    yield piece
            finally:
                answer.response.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"GET {path}: {type(error).__name__}: {error}") from error

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
        found: list[Manifest] = []
        async for answer in self._pages(path, query, _LONG_PAGE, namespace):
            parts = (kept(kept_parts(kind, one)) for one in items_of(answer, path))
            found += [one for one in parts if one is not None]
        return found

    async def list_at(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
    ) -> tuple[list[Manifest], str]:
        """Read the objects that match the selector, and the list's resourceVersion.

        `kept` may replace each object by a known equal one, or None, page by page.

        An API server that lags behind returns old objects, which only this version reveals. All
        pages are of this version; managedFields are removed. A page requested too late (410) is
        Unavailable.
        """
        path = path_to(api_version, kind, namespace)
        query = {"labelSelector": label_selector} if label_selector else {}
        found: list[Manifest] = []
        version = ""
        async for answer in self._pages(path, query, _PAGE, namespace):
            for one in items_of(answer, path):
                leave_out_managed_fields(one)
                if (part := kept(kept_parts(kind, one))) is not None:
                    found.append(part)
            version = str(_metadata_of(answer).get("resourceVersion") or "")
        return found, version

    async def _pages(
        self, path: str, query: dict[str, str], limit: int, namespace: str | None
    ) -> AsyncIterator[Manifest]:
        """Yield the pages of a list, with fewer objects each where they are large."""
        more: dict[str, str] = {}
        while True:
            try:
                async with self._lists.slot(namespace or ""):
                    answer = await self._request(
                        "GET", "list", path, query=query | {"limit": str(limit)} | more
                    )
            except AnswerTooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)
                continue
            yield answer
            more = {"continue": str(_metadata_of(answer).get("continue") or "")}
            if not more["continue"]:
                return

    async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """POST an object; without a namespace it is cluster-scoped."""
        namespace = manifest.get("metadata", {}).get("namespace")
        path = path_to(manifest["apiVersion"], manifest["kind"], namespace)
        query = {"fieldManager": field_manager}
        return await self._request("POST", "create", path, query=query, body=manifest)

    async def replace(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """PUT an object; with a resourceVersion it is a compare-and-swap."""
        query = {"fieldManager": field_manager}
        return await self._request("PUT", "replace", path_of(manifest), query=query, body=manifest)

    async def apply(
        self, manifest: Manifest, *, field_manager: str, dry_run: bool = False
    ) -> Manifest:
        """Apply server-side with force: the operator owns the fields."""
        query = {"fieldManager": field_manager, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        path = path_of(manifest)
        return await self._request("PATCH", "apply", path, _APPLY, query=query, body=manifest)

    async def apply_status(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """Apply the status subresource server-side."""
        query = {"fieldManager": field_manager, "force": "true"}
        path = f"{path_of(manifest)}/status"
        return await self._request(
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
        path = await self._found(
            api_version, deployment["kind"], metadata["namespace"], metadata["name"]
        )
        path, query = f"{path}/scale", {"fieldManager": field_manager}
        if api_version not in _SCALED_BY_APPLY:
            return await self._request("PUT", "put_scale", path, query=query, body=scale)
        query["force"] = "true"
        return await self._request("PATCH", "apply_scale", path, _APPLY, query=query, body=scale)

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """POST an eviction, which respects PodDisruptionBudgets, of the pod with this UID."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"{path_to('v1', 'Pod', namespace, name)}/eviction"
        await self._request("POST", "evict", path, body=body)

    async def json_patch(
        self, manifest: Manifest, operations: list[Manifest], *, field_manager: str
    ) -> Manifest:
        """Patch with RFC 6902 operations, all or none."""
        query = {"fieldManager": field_manager}
        path = path_of(manifest)
        return await self._request(
            "PATCH", "json_patch", path, _JSON_PATCH, query=query, body=operations
        )

    async def _found(self, api_version: str, kind: str, namespace: str | None, name: str) -> str:
        """Return the path of an object; the plural of an unknown kind is discovered once."""
        if kind in PLURALS:
            return path_to(api_version, kind, namespace, name)
        if (api_version, kind) not in self._plurals:
            answer = await self._request("GET", "discover", root(api_version))
            for one in answer.get("resources") or ():
                if "/" not in one["name"] and one.get("namespaced"):
                    self._plurals[api_version, one["kind"]] = one["name"]
            if (api_version, kind) not in self._plurals:
                raise NotFound(f"the API server has no namespaced kind {kind} in {api_version}")
        return located(api_version, self._plurals[api_version, kind], namespace, name)

    async def _request(
        self,
        method: str,
        verb: str,
        path: str,
        content_type: str = _JSON,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
    ) -> Manifest:
        asked = f"{method} {path}"
        found = await self._answer(method, verb, path, content_type, query=query, body=body)
        if found.status >= 300:
            known = [*sent_in(body), *self._credentials()]
            raise error_of(found.status, found.body, found.retry_after, asked, known)
        return object_of(found, asked)

    def _credentials(self) -> Iterator[str]:
        """Yield our credentials, which a response may repeat."""
        assert self._client is not None
        for value in self._client.configuration.api_key.values():
            yield bare(value)

    async def _answer(
        self,
        method: str,
        verb: str,
        path: str,
        content_type: str = _JSON,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
    ) -> Fetched:
        """Send a request within the deadline and count it; raise Unavailable without a response."""
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        code = "cancelled"
        try:
            found = await self._exchange(method, path, content_type, query or {}, body)
            code = str(found.status)
        except TimeoutError:
            code = "timeout"
            held = "" if method == "GET" else _HELD
            raise Unavailable(
                f"{method} {path}: no response within {self._deadline_s:g} s{held}"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            code = "connection"
            raise Unavailable(f"{method} {path}: {type(error).__name__}: {error}") from error
        finally:
            self._on_call(verb=verb, code=code, seconds=loop.time() - begun_s)
        return found

    async def _exchange(
        self, method: str, path: str, content_type: str, query: dict[str, str], body: object
    ) -> Fetched:
        assert self._client is not None
        headers = _HEADERS | {"Content-Type": content_type}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = self._client.configuration.host + path
        if query:
            url += f"?{urlencode(query)}"
        answer = await self._client.rest_client.request(  # type: ignore[no-untyped-call]
            method,
            url,
            headers=headers,
            body=body,
            _request_timeout=self._timeout,
        )
        try:
            return Fetched(
                status=answer.status,
                body=await read_start(answer.response, MAX_ANSWER_BYTES, MAX_ANSWER_BYTES),
                date=answer.headers.get("Date", ""),
                retry_after=answer.headers.get("Retry-After", ""),
            )
        except ValueError as error:
            answer.response.close()
            raise AnswerTooLarge(f"{method} {path}: {error}") from error
        finally:
            answer.response.release()


def _metadata_of(answer: Manifest) -> Manifest:
    metadata = answer.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
