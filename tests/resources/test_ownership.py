"""Of a Deployment that was created, replicas are the scaler's and the rest is the applier's."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from headroom.api.timestamps import rfc3339
from headroom.resources.ownership import split_ownership

NOW_S = 1_800_000_000.0
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
APPLIER = entry("headroom", "Apply", REST, time=rfc3339(NOW_S))
SCALED = entry("headroom-scaler", "Apply", REPLICAS, subresource="scale")
STATUS = entry("kube-controller-manager", "Update", {"f:status": {}}, subresource="status")
EDITED = entry("kubectl-edit", "Update", {"f:spec": {"f:paused": {}}})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([CREATED], [SCALER, APPLIER]),
        ([STATUS, CREATED, EDITED], [STATUS, SCALER, APPLIER, EDITED]),
        ([entry("headroom-scaler", "Update", REST)], [APPLIER]),
        ([SCALED, CREATED], [SCALED, SCALER, APPLIER]),
    ],
    ids=["created", "beside others", "scaled through /scale since", "already scaled"],
)
def test_everything_but_replicas_goes_to_the_applier(before: Any, after: Any) -> None:
    assert split_ownership(before, NOW_S) == after


@pytest.mark.parametrize("order", [1, -1])
def test_what_the_applier_owned_before_it_keeps(order: int) -> None:
    own = entry("headroom", "Apply", {"f:metadata": {"f:annotations": {"f:a": {}}}})
    split = split_ownership([CREATED, own][::order], NOW_S)
    assert split is not None
    (applier,) = [e for e in split if e["manager"] == "headroom"]
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
        [{"manager": "headroom-scaler", "operation": "Update"}],
        [entry("headroom-scaler", "Update", {})],
    ],
)
def test_there_is_nothing_to_do_otherwise(fields: Any) -> None:
    assert split_ownership(fields, NOW_S) is None


def test_a_split_is_done_once_and_leaves_its_input_alone() -> None:
    before = [copy.deepcopy(CREATED)]
    split = split_ownership(before, NOW_S)
    assert split is not None
    assert before == [CREATED]
    assert split_ownership(split, NOW_S) is None
