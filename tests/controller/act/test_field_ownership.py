"""The scaler owns the replicas of a created Deployment, and the applier the rest."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from headroom.controller.act.field_ownership import handover, is_controlled_by

EVERYTHING = {
    "f:metadata": {"f:labels": {".": {}, "f:team": {}}},
    "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:nodeSelector": {}}}},
}
REST = {
    "f:metadata": {"f:labels": {".": {}, "f:team": {}}},
    "f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}},
}
REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def entry(manager: str, operation: str, fields: Any, **more: str) -> dict[str, Any]:
    made = {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "time": "2026-01-31T12:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": copy.deepcopy(fields),
    }
    return made | more


CREATED = entry("headroom-scaler", "Update", EVERYTHING)
SCALER = entry("headroom-scaler", "Update", REPLICAS)
APPLIER = entry("headroom", "Apply", REST)
SCALED = entry("headroom-scaler", "Apply", REPLICAS, subresource="scale")
STATUS = entry("kube-controller-manager", "Update", {"f:status": {}}, subresource="status")
EDITED = entry("kubectl-edit", "Update", {"f:spec": {"f:paused": {}}})


def deployment(*managed_fields: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "41", "managedFields": list(managed_fields)}}


def split(*managed_fields: dict[str, Any]) -> list[dict[str, Any]]:
    replace, guard = handover(deployment(*managed_fields))
    assert guard == {"op": "replace", "path": "/metadata/resourceVersion", "value": "41"}
    assert (replace["op"], replace["path"]) == ("replace", "/metadata/managedFields")
    found: list[dict[str, Any]] = replace["value"]
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([CREATED], [APPLIER, SCALER]),
        ([STATUS, CREATED, EDITED], [STATUS, EDITED, APPLIER, SCALER]),
        ([entry("headroom-scaler", "Update", REST)], [APPLIER]),
        ([SCALED, CREATED], [SCALED, APPLIER, SCALER]),
    ],
    ids=["created", "among other managers", "replicas taken by someone else", "scaled since"],
)
def test_handover_gives_all_but_replicas_to_the_applier(before: Any, after: Any) -> None:
    assert split(*before) == after


@pytest.mark.parametrize("order", [1, -1])
def test_handover_keeps_the_appliers_fields(order: int) -> None:
    own = entry("headroom", "Apply", {"f:metadata": {"f:annotations": {"f:a": {}}}})
    (applier,) = [e for e in split(*[CREATED, own][::order]) if e["manager"] == "headroom"]
    assert applier["fieldsV1"] == {
        "f:metadata": {"f:annotations": {"f:a": {}}, "f:labels": {".": {}, "f:team": {}}},
        "f:spec": REST["f:spec"],
    }


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [SCALER, APPLIER],
        [SCALED, APPLIER, STATUS],
        [entry("headroom-scaler", "Apply", EVERYTHING)],
        [entry("headroom-scaler", "Update", EVERYTHING, subresource="status")],
        [entry("kubectl-create", "Update", EVERYTHING)],
    ],
)
def test_handover_after_the_split_is_empty(fields: list[dict[str, Any]]) -> None:
    assert handover(deployment(*fields)) == []


def test_handover_runs_once_and_keeps_its_input() -> None:
    before = deployment(copy.deepcopy(CREATED))
    after = handover(before)[0]["value"]
    assert before == deployment(CREATED)
    assert handover(deployment(*after)) == []


@pytest.mark.parametrize(
    ("owners", "ours"),
    [
        (None, False),
        ([], False),
        ([{"uid": "u", "controller": True}], True),
        ([{"uid": "u"}], False),
        ([{"uid": "v", "controller": True}], False),
        ([{"uid": "v"}, {"uid": "u", "controller": True}], True),
    ],
)
def test_object_is_ours_by_controller_reference(owners: Any, ours: bool) -> None:
    assert is_controlled_by({"metadata": {"ownerReferences": owners}}, "u") is ours
