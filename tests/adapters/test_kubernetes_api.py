"""Requests to the API server, and the translation of its responses."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from answering import Answering
from headroom.adapters.kubernetes_api import KubernetesApi
from headroom.adapters.kubernetes_connection import MAX_ANSWER_BYTES, KubernetesConnection
from headroom.adapters.kubernetes_credentials import of_pod
from headroom.errors import (
    AnswerTooLarge,
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
    Rejected,
    Unavailable,
)

pytestmark = pytest.mark.clock

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "resnet", "namespace": "vision", "resourceVersion": "17"},
}
ROOT = "/apis/apps/v1/namespaces/vision/deployments"


class Calls(list[tuple[str, str]]):
    def __call__(self, verb: str, code: str, seconds: float) -> None:
        self.append((verb, code))


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
async def api(server: Answering, calls: Calls, tmp_path: Path) -> AsyncIterator[KubernetesApi]:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    environment = {"KUBECONFIG": str(path), "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    server.gives(text="{}")
    async with KubernetesApi(
        KubernetesConnection(calls, deadline_s=0.5, environment=environment)
    ) as opened:
        yield opened


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


async def test_get_sends_credentials(api: KubernetesApi, server: Answering, calls: Calls) -> None:
    server.gives(text='{"spec": {"replicas": 3}}')
    found = await api.get("apps/v1", "Deployment", "vision", "resnet")
    assert found == {"spec": {"replicas": 3}}
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", f"{ROOT}/resnet")
    assert asked.headers["Authorization"] == "Bearer secret"
    assert calls == [("get", "200")]


@pytest.mark.parametrize(
    ("namespace", "path"),
    [("vision", "/api/v1/namespaces/vision/pods"), (None, "/api/v1/pods")],
)
async def test_list_uses_the_selector(
    api: KubernetesApi, server: Answering, namespace: str | None, path: str
) -> None:
    server.gives(text='{"items": [{"metadata": {}}]}')
    assert await api.list_all("v1", "Pod", namespace, "a/b=c") == [{"metadata": {}}]
    asked = (server.asked[0].path, server.asked[0].query)
    assert asked == (path, {"labelSelector": "a/b=c", "limit": "500"})


async def test_null_items_are_an_empty_list(api: KubernetesApi, server: Answering) -> None:
    server.gives(text='{"items": null}')
    assert await api.list_all("v1", "Pod", None) == []


VERSION_7_AND_MORE = {"metadata": {"resourceVersion": "7", "continue": "more"}}


def pages_in_turn(server: Answering, *pages: tuple[int, object]) -> None:
    left = iter(pages)

    async def answer(_: web.Request) -> web.Response:
        status, body = next(left)
        return web.json_response(body, status=status)

    server.answer = answer


async def test_long_list_is_read_in_pages_of_one_version(
    api: KubernetesApi, server: Answering
) -> None:
    pages_in_turn(
        server,
        (200, {**VERSION_7_AND_MORE, "items": [{"metadata": {"managedFields": [{}]}}]}),
        (200, {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {}}]}),
    )
    found = await api.list_at("headroom.dev/v1alpha1", "InferenceService", None)
    assert found == ([{"metadata": {}}, {"metadata": {}}], "7")
    assert [one.query.get("continue") for one in server.asked] == [None, "more"]
    assert {one.query["limit"] for one in server.asked} == {"100"}


async def test_list_of_large_objects_is_read_in_smaller_pages(
    api: KubernetesApi, server: Answering
) -> None:
    """Objects of 0.5 MB: 100 of them are refused, 12 as well, and one at a time is read."""

    async def answer(request: web.Request) -> web.Response:
        first = int(request.query.get("continue", "0"))
        count = min(int(request.query["limit"]), 20 - first)
        more = str(first + count) if first + count < 20 else ""
        names = [str(first + at) for at in range(count)]
        items = [{"metadata": {"name": name}, "x": "y" * 500_000} for name in names]
        return web.json_response({"metadata": {"continue": more}, "items": items})

    server.answer = answer
    found = await api.list_all("headroom.dev/v1alpha1", "InferenceService", None)
    assert [one["metadata"]["name"] for one in found] == [str(number) for number in range(20)]
    found, _ = await api.list_at("headroom.dev/v1alpha1", "InferenceService", None)
    assert len(found) == 20


async def test_answer_above_the_bound_is_not_read(api: KubernetesApi, server: Answering) -> None:
    server.gives(text="x" * (MAX_ANSWER_BYTES + 1))
    with pytest.raises(AnswerTooLarge, match="must have at most 4194304 bytes"):
        await api.get("apps/v1", "Deployment", "vision", "resnet")


@pytest.mark.parametrize("levels", [400, 1100])
async def test_list_with_a_deeply_nested_object_is_read(
    api: KubernetesApi, server: Answering, levels: int
) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    server.gives(text='{"metadata": {}, "items": [{"metadata": {}, "spec": ' + deep + "}]}")
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + levels)
    try:
        (one,) = await api.list_all("headroom.dev/v1alpha1", "InferenceService", None)
    finally:
        sys.setrecursionlimit(usual)
    assert list(one["spec"]) == ["a"]


async def test_lists_keep_what_is_read(api: KubernetesApi, server: Answering) -> None:
    """See test_kept_parts; and of that what the caller keeps."""
    metadata = {"name": "p", "annotations": {f"a{at}": "x" * 200 for at in range(1200)}}
    pod = {"metadata": metadata, "spec": {"volumes": [{}] * 900, "containers": [{"name": "c"}]}}
    server.gives(text=json.dumps({"items": [pod, pod]}))
    kept = {"metadata": {"name": "p", "annotations": {}}, "spec": {"containers": [{"name": "c"}]}}
    at_version, _ = await api.list_at("v1", "Pod", None)
    assert at_version == await api.list_all("v1", "Pod", None) == [kept, kept]
    assert await api.list_all("v1", "Pod", None, "", lambda _: None) == []
    assert await api.list_at("v1", "Pod", None, "", lambda _: None) == ([], "")


async def test_list_with_late_pages_is_an_error(api: KubernetesApi, server: Answering) -> None:
    """410: the version of the first page was compacted; the kind is still served."""
    pages_in_turn(server, (200, {**VERSION_7_AND_MORE, "items": []}), (410, {}))
    with pytest.raises(Unavailable, match="410"):
        await api.list_at("headroom.dev/v1alpha1", "InferenceService", None)


async def test_apply_is_server_side_and_forced(api: KubernetesApi, server: Answering) -> None:
    await api.apply(DEPLOYMENT, field_manager="headroom", dry_run=True)
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PATCH", f"{ROOT}/resnet")
    assert asked.query == {"fieldManager": "headroom", "force": "true", "dryRun": "All"}
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    assert json.loads(asked.body) == DEPLOYMENT


async def test_replicas_are_written_through_scale_at_the_version_read(
    api: KubernetesApi, server: Answering
) -> None:
    await api.apply_scale(DEPLOYMENT, 5, field_manager="headroom-scaler")
    (asked,) = server.asked
    assert asked.path == f"{ROOT}/resnet/scale"
    assert asked.query["fieldManager"] == "headroom-scaler"
    body = json.loads(asked.body)
    assert (body["kind"], body["spec"]) == ("Scale", {"replicas": 5})
    assert body["metadata"]["resourceVersion"] == "17"


async def test_create_status_and_patch_use_the_right_paths(
    api: KubernetesApi, server: Answering
) -> None:
    await api.create(DEPLOYMENT, field_manager="m")
    await api.apply_status(DEPLOYMENT, field_manager="m")
    await api.json_patch(DEPLOYMENT, [{"op": "test", "path": "/a", "value": 1}], field_manager="m")
    assert [(one.method, one.path) for one in server.asked] == [
        ("POST", ROOT),
        ("PATCH", f"{ROOT}/resnet/status"),
        ("PATCH", f"{ROOT}/resnet"),
    ]
    assert server.asked[2].headers["Content-Type"] == "application/json-patch+json"
    assert json.loads(server.asked[2].body) == [{"op": "test", "path": "/a", "value": 1}]


async def test_eviction_names_the_uid(api: KubernetesApi, server: Answering, calls: Calls) -> None:
    await api.evict("vision", "resnet-abc-1", "123")
    (asked,) = server.asked
    path = "/api/v1/namespaces/vision/pods/resnet-abc-1/eviction"
    assert (asked.method, asked.path) == ("POST", path)
    body = json.loads(asked.body)
    assert (body["apiVersion"], body["kind"]) == ("policy/v1", "Eviction")
    assert body["deleteOptions"] == {"preconditions": {"uid": "123"}}
    assert calls == [("evict", "200")]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Rejected),
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Unavailable),
        (422, Rejected),
        (429, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
        (302, Unavailable),
    ],
)
async def test_response_is_translated_by_status(
    api: KubernetesApi, server: Answering, calls: Calls, status: int, kind: type[ClusterError]
) -> None:
    server.gives(status=status, text='{"kind": "Status", "message": "because"}')
    with pytest.raises(kind, match=rf"because \({status}\)"):
        await api.get("v1", "Pod", "a", "b")
    assert calls == [("get", str(status))]


async def test_error_message_is_truncated_and_redacted(
    api: KubernetesApi, server: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    server.gives(status=422, text=json.dumps({"message": "x" * 100_000}))
    with pytest.raises(Rejected) as raised:
        await api.apply(DEPLOYMENT, field_manager="m")
    assert len(str(raised.value)) < 1100
    assert "secret" not in str(raised.value) + caplog.text


@pytest.mark.parametrize(("header", "pause_s"), [("7", 7.0), ("", 1.0), ("9999", 60.0)])
async def test_retry_after_is_kept(
    api: KubernetesApi, server: Answering, header: str, pause_s: float
) -> None:
    server.gives(status=429, **({"Retry-After": header} if header else {}))
    with pytest.raises(Unavailable) as raised:
        await api.get("v1", "Pod", "a", "b")
    assert raised.value.retry_after_s == pause_s


@pytest.mark.parametrize("body", ["<html>login</html>", "", '{"half": '])
async def test_response_without_json_is_unavailable(
    api: KubernetesApi, server: Answering, body: str
) -> None:
    server.gives(text=body)
    with pytest.raises(Unavailable, match="not JSON"):
        await api.get("v1", "Pod", "a", "b")


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


@pytest.mark.parametrize("body", ["[]", "null", '{"items": {}}', '{"items": 3}'])
async def test_response_of_another_shape_is_unavailable(
    api: KubernetesApi, server: Answering, body: str
) -> None:
    server.gives(text=body)
    with pytest.raises(Unavailable, match="the response is not"):
        await api.list_all("v1", "Pod", None)


async def test_fetch_returns_status_and_server_time(api: KubernetesApi, server: Answering) -> None:
    server.gives(status=502, text="no route")
    found = await api.fetch("/api/v1/namespaces/a/pods/b:8000/proxy/metrics")
    assert (found.status, found.body) == (502, b"no route")
    assert found.date.endswith("GMT")


async def test_cluster_scoped_object_has_a_cluster_path(
    api: KubernetesApi, server: Answering
) -> None:
    await api.get("v1", "Node", None, "gpu-1")
    await api.create(
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}},
        field_manager="m",
    )
    assert [one.path for one in server.asked] == [
        "/api/v1/nodes/gpu-1",
        "/apis/authentication.k8s.io/v1/tokenreviews",
    ]


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
