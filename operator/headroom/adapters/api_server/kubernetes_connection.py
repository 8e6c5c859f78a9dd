"""A connection to one API server: credentials, deadlines, and errors in terms of `headroom.errors`.

Only ApiClient and the configuration of `kubernetes.aio` are used: its typed API classes cost 188
MB. Every request has a deadline and is counted.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from headroom.adapters.api_server.kubernetes_credentials import load_credentials
from headroom.adapters.api_server.kubernetes_responses import Fetched, error_of, object_of
from headroom.adapters.api_server.page_sizes import LARGEST_OBJECT_BYTES
from headroom.adapters.http_session import BodyTooLargeError, read_start
from headroom.adapters.redaction import bare, sent_in
from headroom.errors import AnswerTooLarge, Unavailable

Manifest = dict[str, Any]

DEADLINE_S = 6.0
"""Short enough that a hanging request does not delay the next tick for long after a fault."""
CONNECTIONS = 1100
"""A watch for each of 1000 targets in Gateway mode, and 100 for requests."""
MAX_ANSWER_BYTES = LARGEST_OBJECT_BYTES
"""Parsed, it takes 20 MB."""
JSON = "application/json"

_HELD = "; an admission webhook may delay it: its timeoutSeconds must be shorter"
_HEADERS = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "headroom"}
"""No compression: for a LIST it would cost both sides more CPU than 1 MB/s is worth."""


class OnCall(Protocol):
    """Callback with the outcome of one request."""

    def __call__(self, verb: str, code: str, seconds: float) -> None:
        """Count it; `code` is the HTTP status or the kind of failure."""
        ...


def _without_redirects() -> aiohttp.TraceConfig:
    """Return hooks that refuse redirects: a pod's answer, read through the server, may be one.

    The client library passes no option for it.
    """

    async def refuse(_: object, __: object, seen: aiohttp.TraceRequestRedirectParams) -> None:
        if not {"Location", "URI"}.isdisjoint(seen.response.headers):
            seen.response.close()
            raise aiohttp.ClientError("redirects are not followed")

    tracing = aiohttp.TraceConfig()
    tracing.on_request_redirect.append(refuse)
    return tracing


class KubernetesConnection:
    """Connection to one API server. Use as an async context manager."""

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
            "auto_decompress": False,
            "trace_configs": [_without_redirects()],
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

    async def fetch(self, path: str, most_bytes: int = MAX_ANSWER_BYTES) -> Fetched:
        """GET any path of the server; raise Unavailable without a response."""
        return await self.answer("GET", "fetch", path, most_bytes=most_bytes)

    async def fetched(
        self, path: str, query: dict[str, str], most_bytes: int, accept: str = JSON
    ) -> Fetched:
        """GET a page of a list; raise the error of its status, AnswerTooLarge above the bound."""
        found = await self.answer(
            "GET", "list", path, query=query, most_bytes=most_bytes, accept=accept
        )
        self._check(found, f"GET {path}")
        return found

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        """GET a stream, and yield its pieces until it ends.

        Raises Unavailable if it breaks or is silent for `quiet_s`, and the error of its status,
        whose message has to arrive within the deadline of requests.
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
                    again_after = answer.headers.get("Retry-After", "")
                    async with asyncio.timeout(self._deadline_s):
                        why = await read_start(answer.response, MAX_ANSWER_BYTES, MAX_ANSWER_BYTES)
                    raise error_of(answer.status, why, again_after, f"GET {path}")
                async for piece in answer.response.content.iter_any():
                    yield piece
            finally:
                answer.response.close()
        except (aiohttp.ClientError, BodyTooLargeError, TimeoutError, OSError) as error:
            raise Unavailable(f"GET {path}: {type(error).__name__}: {error}") from error

    async def request(
        self,
        method: str,
        verb: str,
        path: str,
        content_type: str = JSON,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
    ) -> Manifest:
        """Send a request and return the object of its response; raise the error of its status."""
        asked = f"{method} {path}"
        found = await self.answer(method, verb, path, content_type, query=query, body=body)
        self._check(found, asked, body)
        return object_of(found, asked)

    def _check(self, found: Fetched, asked: str, body: object = None) -> None:
        if found.status >= 300:
            known = [*sent_in(body), *self._credentials()]
            raise error_of(found.status, found.body, found.retry_after, asked, known)

    def _credentials(self) -> Iterator[str]:
        """Yield the operator's credentials, which a response may repeat."""
        assert self._client is not None
        for value in self._client.configuration.api_key.values():
            yield bare(value)

    async def answer(
        self,
        method: str,
        verb: str,
        path: str,
        content_type: str = JSON,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
        most_bytes: int = MAX_ANSWER_BYTES,
        accept: str = JSON,
    ) -> Fetched:
        """Send a request within the deadline and count it; raise Unavailable without a response."""
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        code = "cancelled"
        headers = _HEADERS | {"Content-Type": content_type, "Accept": accept}
        try:
            found = await self._exchange(method, path, headers, query or {}, body, most_bytes)
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
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        query: dict[str, str],
        body: object,
        most_bytes: int,
    ) -> Fetched:
        assert self._client is not None
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
                body=await read_start(answer.response, most_bytes, most_bytes),
                date=answer.headers.get("Date", ""),
                retry_after=answer.headers.get("Retry-After", ""),
            )
        except BodyTooLargeError as error:
            answer.response.close()
            raise AnswerTooLarge(f"{method} {path}: {error}", error.start) from error
        finally:
            answer.response.release()
