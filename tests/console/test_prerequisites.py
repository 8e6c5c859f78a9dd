"""Prerequisites of the operator in a cluster, and the message about a missing one."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from headroom.api.schema.crd import custom_resource_definition
from headroom.api.schema.served_schema import missing_fields, served_schema
from headroom.controller.permissions import (
    Permission,
    best_effort,
    on_certificates,
    on_gateways,
    on_lease,
    on_marks,
    on_services,
)
from headroom.errors import Unavailable
from headroom.ops.prerequisites import AGAIN_AFTER_S, UNMET_AGAIN_AFTER_S, Prerequisites
from support.virtual_time import VirtualTimeLoop

DEPLOY = Path(__file__).parents[2] / "deploy"
RBAC = DEPLOY / "base" / "rbac.yaml"
ROUTING = DEPLOY / "components" / "gateway" / "rbac.yaml"
CERTIFICATES = DEPLOY / "components" / "gateway" / "certificates.yaml"
MARKS = DEPLOY / "components" / "mark-pods" / "rbac.yaml"


@dataclass
class Answered:
    status: int
    body: bytes


def openapi(change: Callable[[dict[str, Any]], object] = lambda _: None) -> Answered:
    """Return the OpenAPI of an API server with Headroom's CRD, changed."""
    version = custom_resource_definition()["spec"]["versions"][0]
    schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    change(schema)
    named = [{"group": "headroom.dev", "kind": "InferenceService", "version": "v1alpha1"}]
    schemas = {"x": {}, "dev.headroom.X": schema | {"x-kubernetes-group-version-kind": named}}
    return Answered(200, json.dumps({"components": {"schemas": schemas}}).encode())


class FakeReviews:
    def __init__(self) -> None:
        self.answer = openapi()
        self.refused: set[str] = set()
        self.down = False
        self.looks = 0

    async def fetch(self, path: str) -> Answered:
        assert path == "/openapi/v3/apis/headroom.dev/v1alpha1"
        self.looks += 1
        if self.down:
            raise Unavailable("503")
        return self.answer

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        asked = manifest["spec"]["resourceAttributes"]
        return {"status": {"allowed": asked["resource"] not in self.refused}}


def watched(
    scenario: Callable[[Prerequisites, FakeReviews], Awaitable[None]], *unlisted: str
) -> None:
    async def run() -> None:
        api = FakeReviews()
        needed = [*on_services(["vision"]), *on_lease("system", "headroom-operator")]
        prerequisites = Prerequisites(api, needed, lambda: unlisted)
        task = asyncio.create_task(prerequisites.watch())
        try:
            await scenario(prerequisites, api)
        finally:
            task.cancel()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def complaints(prerequisites: Prerequisites) -> dict[str, str]:
    return {check.name: check.complaint for check in prerequisites.checks()}


def test_met_prerequisites_are_checked_rarely() -> None:
    async def scenario(prerequisites: Prerequisites, api: FakeReviews) -> None:
        assert not all(check.passed for check in prerequisites.checks())
        await asyncio.sleep(1.0)
        assert complaints(prerequisites) == {"crd": "", "rbac": ""}
        await asyncio.sleep(2.0 * AGAIN_AFTER_S)
        assert api.looks == 3

    watched(scenario)


def test_missing_permissions_are_named_until_granted() -> None:
    async def scenario(prerequisites: Prerequisites, api: FakeReviews) -> None:
        api.refused = {"pods", "leases"}
        await asyncio.sleep(1.0)
        assert complaints(prerequisites)["rbac"] == (
            "not permitted: list pods -n vision; watch pods -n vision; "
            "patch pods --subresource=status -n vision; "
            "get leases.coordination.k8s.io/headroom-operator -n system; "
            "update leases.coordination.k8s.io/headroom-operator -n system; "
            "create leases.coordination.k8s.io -n system"
        )
        api.refused = set()
        await asyncio.sleep(UNMET_AGAIN_AFTER_S)
        assert complaints(prerequisites)["rbac"] == ""

    watched(scenario)


def test_namespace_that_cannot_be_read_leaves_the_operator_ready_for_others() -> None:
    async def scenario(prerequisites: Prerequisites, api: FakeReviews) -> None:
        api.refused = {"pods"}
        await asyncio.sleep(1.0)
        assert complaints(prerequisites)["rbac"] == ""
        api.refused = {"pods", "leases"}
        await asyncio.sleep(AGAIN_AFTER_S)
        assert complaints(prerequisites)["rbac"].endswith("leases.coordination.k8s.io -n system")

    watched(scenario, "vision", "system")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answered(404, b""), "serves no inferenceservices.headroom.dev/v1alpha1"),
        (
            openapi(lambda schema: schema["properties"]["status"]["properties"].pop("checkpoint")),
            "is not of the operator's version: it lacks status.checkpoint; apply",
        ),
        (
            openapi(lambda schema: schema["properties"].pop("spec")),
            "is not of the operator's version: it lacks spec; apply",
        ),
    ],
    ids=["no CRD", "an older one", "a much older one"],
)
def test_outdated_crd_names_missing_fields(answer: Answered, words: str) -> None:
    async def scenario(prerequisites: Prerequisites, api: FakeReviews) -> None:
        api.answer = answer
        await asyncio.sleep(1.0)
        assert words in complaints(prerequisites)["crd"]
        assert "headroom crd" in complaints(prerequisites)["crd"]

    watched(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        *(Answered(200, b) for b in (b"<html>", b"[]", b"{}", b'{"components": {"schemas": 3}}')),
        Answered(401, b""),
    ],
)
def test_unavailable_api_server_keeps_last_result(answer: Answered) -> None:
    async def scenario(prerequisites: Prerequisites, api: FakeReviews) -> None:
        await asyncio.sleep(1.0)
        api.answer = answer
        await asyncio.sleep(AGAIN_AFTER_S)
        api.down = True
        await asyncio.sleep(AGAIN_AFTER_S)
        assert complaints(prerequisites) == {"crd": "", "rbac": ""}
        assert api.looks > 50, "it asks again soon"

    watched(scenario)


def test_newer_crd_passes() -> None:
    own: dict[str, Any] = {"properties": {"a": {"properties": {"b": {}}}}}
    newer: dict[str, Any] = {"properties": {"a": {"properties": {"b": {}, "c": {}}}, "d": {}}}
    assert missing_fields(own, newer) == []
    assert missing_fields(newer, own) == ["a.c", "d"]


@pytest.mark.parametrize(
    ("own", "served", "missing"),
    [
        ({"items": {"properties": {"a": {}}}}, {"items": {"properties": {}}}, ["l[].a"]),
        (
            {"additionalProperties": {"properties": {"a": {}}}},
            {"additionalProperties": {}},
            ["l{}.a"],
        ),
        (
            {"properties": {"a": {}}},
            {"x-kubernetes-preserve-unknown-fields": True, "properties": {}},
            [],
        ),
        ({"enum": ["vllm", "dynamo"]}, {"enum": ["vllm", "other"]}, ["l=dynamo"]),
        ({"enum": ["vllm", "dynamo"]}, {}, []),
    ],
    ids=["in a list", "in a map", "where everything is kept", "a value", "any value"],
)
def test_missing_field_is_named_by_its_path(
    own: dict[str, Any], served: dict[str, Any], missing: list[str]
) -> None:
    assert missing_fields({"properties": {"l": own}}, {"properties": {"l": served}}) == missing


def test_unserved_kind_has_no_schema() -> None:
    assert served_schema({"components": {"schemas": {"x": {}}}}, "InferenceService") == {}


def granted(kind: str, path: Path = RBAC, named: str = "headroom-operator") -> set[Permission]:
    (role,) = [
        one
        for one in yaml.safe_load_all(path.read_text())
        if one["kind"] == kind and one["metadata"]["name"] == named
    ]
    return {
        Permission(
            verb=verb,
            group=group,
            resource=resource,
            namespace=role["metadata"].get("namespace", ""),
            name=name,
        )
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def test_shipped_rbac_grants_the_checked_permissions() -> None:
    assert granted("ClusterRole") == {*on_services(), *best_effort()}
    assert granted("Role") == set(on_lease("headroom-system", "headroom-operator"))
    assert granted("ClusterRole", MARKS, "headroom-operator-mark-pods") == set(on_marks())
    routing = granted("ClusterRole", ROUTING, "headroom-operator-gateway")
    everywhere = {replace(one, namespace="") for one in on_gateways((), "x", reviews_tokens=True)}
    assert routing == everywhere
    of_certificates = granted("Role", CERTIFICATES, "headroom-operator-certificates")
    assert of_certificates == set(on_certificates("headroom-system", issues=True))
