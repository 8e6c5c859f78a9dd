"""Requests to the API server, and the translation of its responses."""

from __future__ import annotations

import json

import pytest

from adapters.counted_calls import Calls
from adapters.stored_objects import DEPLOYMENT
from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
    Rejected,
    Unauthenticated,
    Unavailable,
    UnknownKind,
)
from support.answering import Answering

pytestmark = pytest.mark.clock
ROOT = "/apis/apps/v1/namespaces/vision/deployments"


async def test_get_sends_credentials(api: KubernetesApi, server: Answering, calls: Calls) -> None:
    server.gives(text='{"spec": {"replicas": 3}}')
    found = await api.get("apps/v1", "Deployment", "vision", "resnet")
    assert found == {"spec": {"replicas": 3}}
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", f"{ROOT}/resnet")
    assert asked.headers["Authorization"] == "Bearer secret"
    assert calls == [("get", "200")]


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
        (401, Unauthenticated),
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


TYPED = "failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.template.spec"
CONVERTED = "unable to convert unstructured object to apps/v1, Kind=Deployment"
MISSPELT = f"{TYPED}.nodeSelectorr: field not declared in schema"
ENV_AS_MAP = f"{TYPED}.containers.env: expected list, got &{{map[PASS:x{{1\n2}}y]}}"
QUANTITY = (
    f"failed to convert new object (a/b) to proper version: {CONVERTED}: quantities must match"
)
"""Answers of Kubernetes 1.36 to an apply; the last is that to `memory: 16GB`."""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (MISSPELT, "nodeSelectorr: field not declared in schema"),
        (ENV_AS_MAP, "containers.env: expected list; got another type"),
        (QUANTITY, "quantities must match"),
    ],
)
async def test_field_of_another_type_is_a_rejection_although_the_server_answers_500(
    api: KubernetesApi, server: Answering, said: str, shown: str
) -> None:
    server.gives(status=500, text=json.dumps({"kind": "Status", "message": said}))
    with pytest.raises(Rejected) as raised:
        await api.apply(DEPLOYMENT, field_manager="m")
    assert shown in str(raised.value)
    assert "PASS" not in str(raised.value)


async def test_error_message_is_truncated_and_redacted(
    api: KubernetesApi, server: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    server.gives(status=422, text=json.dumps({"message": "x" * 100_000}))
    with pytest.raises(Rejected) as raised:
        await api.apply(DEPLOYMENT, field_manager="m")
    assert len(str(raised.value)) < 1100
    assert "secret" not in str(raised.value) + caplog.text


async def test_kind_that_the_server_does_not_have_is_named_with_the_one_that_is_meant(
    api: KubernetesApi, server: Answering
) -> None:
    resources = [
        {"name": "deployments", "kind": "Deployment", "namespaced": True},
        {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
    ]
    server.gives(text=json.dumps({"resources": resources}))
    said = r"no namespaced kind Deploymnet in apps/v1 \(did you mean Deployment\?\)$"
    with pytest.raises(UnknownKind, match=said):
        await api.get("apps/v1", "Deploymnet", "a", "b")
    with pytest.raises(UnknownKind, match=r"no namespaced kind Rollout in apps/v1$"):
        await api.get("apps/v1", "Rollout", "a", "b")
    server.gives(status=404, text="404 page not found")
    with pytest.raises(UnknownKind, match=r"the API server has no apiVersion argoproj\.io/v1$"):
        await api.get("argoproj.io/v1", "Rollout", "a", "b")


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


@pytest.mark.parametrize(
    "body",
    [
        *("[]", "null", '{"items": {}}', '{"items": 3}', '{"items": [5]}', '{"items": [null]}'),
        '{"items": [{}, [], {}]}',
    ],
)
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
