"""The connection to the API server: kubeconfig, contexts, tokens and deadlines."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from adapters.counted_calls import Calls
from adapters.stored_objects import DEPLOYMENT
from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection
from headroom.adapters.api_server.kubernetes_credentials import of_pod
from headroom.errors import (
    Forbidden,
    Unavailable,
)
from support.answering import Answering

pytestmark = pytest.mark.clock


async def test_service_account_token_is_reread_before_it_expires(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("an authority")
    (tmp_path / "token").write_text("first")
    loader = of_pod(
        tmp_path, {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    )
    configuration = Configuration()
    loader.load_and_set(configuration)

    async def sent() -> str | None:  # with each request
        value = (await configuration.auth_settings())["BearerToken"]["value"]
        assert value is None or isinstance(value, str)
        return value

    (tmp_path / "token").write_text("second")
    assert await sent() == "bearer first"
    loader.token_expires_at = datetime.min  # noqa: DTZ901  (a minute has passed)
    assert await sent() == "bearer second"
    assert await sent() == "bearer second"


async def test_hanging_request_ends_at_its_deadline(
    api: KubernetesApi, server: Answering, calls: Calls
) -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    server.answer = hang
    with pytest.raises(Unavailable, match=r"no response within 0\.5 s"):
        await api.get("v1", "Pod", "a", "b")
    with pytest.raises(Unavailable, match=r"0\.5 s; an admission webhook may delay it"):
        await api.create(DEPLOYMENT, field_manager="test")
    assert calls == [("get", "timeout"), ("create", "timeout")]


@pytest.mark.parametrize(
    ("piece", "pause_s", "why"),
    [(b"e" * (1 << 20), 0.0, "at most 4194304 bytes"), (b"e", 0.1, "TimeoutError")],
    ids=["large", "slow"],
)
async def test_refusal_of_a_stream_that_never_ends_is_not_kept(
    api: KubernetesApi, server: Answering, piece: bytes, pause_s: float, why: str
) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        while True:
            await response.write(piece)
            await asyncio.sleep(pause_s)

    server.answer = refuse
    with pytest.raises(Unavailable, match=why):
        await anext(api.stream("/api/v1/pods?watch=1", 60.0))


async def test_redirect_is_not_followed(
    api: KubernetesApi, server: Answering, calls: Calls
) -> None:
    asked: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        asked.append(request.path)
        raise web.HTTPFound("/elsewhere")

    server.answer = elsewhere
    with pytest.raises(Unavailable, match="redirects are not followed"):
        await api.get("v1", "Pod", "a", "b")
    assert asked == ["/api/v1/namespaces/a/pods/b"]
    assert calls == [("get", "connection")]


async def test_compressed_answer_is_not_unpacked(api: KubernetesApi, server: Answering) -> None:
    async def packed(_: web.Request) -> web.Response:
        body = gzip.compress(bytes(1 << 24))
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    server.answer = packed
    with pytest.raises(Unavailable, match="the response is not JSON"):
        await api.get("v1", "Pod", "a", "b")


async def test_missing_credentials_error_names_the_remedy(
    tmp_path: Path, calls: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    environment = {"KUBECONFIG": str(tmp_path / "absent")}
    with pytest.raises(Forbidden, match=r"absent does not exist; set KUBECONFIG"):
        async with KubernetesApi(KubernetesConnection(on_call=calls, environment=environment)):
            pass
    assert not caplog.records, "one line, and it is the error"


@pytest.mark.parametrize(
    "content",
    [b"", b"a string", b"a: [b", b"\xff\xfe", b"clusters: 3", b"[]"],
    ids=["empty", "text", "broken YAML", "bytes", "number", "list"],
)
async def test_file_that_is_no_kubeconfig_is_named_in_the_error(
    tmp_path: Path, calls: Calls, content: bytes
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(content)
    with pytest.raises(Forbidden, match=r"kubeconfig must be a readable kubeconfig file; got "):
        async with KubernetesApi(KubernetesConnection(on_call=calls, kubeconfig=str(path))):
            pass


async def test_unknown_context_is_named_in_the_error(tmp_path: Path, calls: Calls) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("{clusters: [], users: [], contexts: []}")
    connection = KubernetesConnection(on_call=calls, kubeconfig=str(path), context="other")
    with pytest.raises(Forbidden, match=r"--context must be a context of .*; got 'other'\. "):
        async with KubernetesApi(connection):
            pass


async def test_named_context_is_used_with_its_namespace(
    server: Answering, calls: Calls, tmp_path: Path
) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": name, "user": {"token": name}} for name in ("one", "two")],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "one"}},
            {"name": "two", "context": {"cluster": "c", "user": "two", "namespace": "vision"}},
        ],
        "current-context": "one",
    }
    path = tmp_path / "other"
    path.write_text(json.dumps(config))
    server.gives(text="{}")
    inside = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    for context, token, namespace in ((None, "one", "default"), ("two", "two", "vision")):
        async with KubernetesApi(
            KubernetesConnection(calls, environment=inside, kubeconfig=str(path), context=context)
        ) as api:
            await api.get("v1", "Pod", "a", "b")
            assert api.namespace == namespace
            assert server.asked[-1].headers["Authorization"] == f"Bearer {token}"
