"""Several InferenceServices and one workload: one of them owns it, whatever the order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from headroom.controller.services.target_owners import TargetOwners

Manifest = dict[str, Any]


def claimant(
    name: str, created: str, *, target: str = "", mode: str = "Auto", version: str = "apps/v1"
) -> Manifest:
    reference = {"apiVersion": version, "kind": "Deployment", "name": target}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": f"2026-11-20T{created}Z",
        },
        "spec": {"scaling": {"mode": mode}, **({"targetRef": reference} if target else {})},
    }


OLD = claimant("old", "10:00:00", target="llm")
YOUNG = claimant("young", "11:00:00", target="llm")
ADVISER = claimant("adviser", "09:00:00", target="llm", mode="Recommend")
OWNER = claimant("llm", "12:00:00")
NEW_API = claimant("beta", "11:00:00", target="llm", version="apps/v1beta2")
CORE = claimant("core", "11:00:00", target="llm", version="v1")


@pytest.mark.parametrize(
    ("services", "rivals"),
    [
        ([OLD], {"old": ""}),
        ([OLD, YOUNG], {"old": "", "young": "old"}),
        ([OLD, ADVISER], {"old": "", "adviser": ""}),
        ([OLD, OWNER], {"old": "llm", "llm": ""}),
        ([OLD, NEW_API], {"old": "", "beta": "old"}),
        ([OLD, CORE], {"old": "", "core": ""}),
        (
            [claimant("b", "10:00:00", target="x"), claimant("a", "10:00:00", target="x")],
            {"b": "a"},
        ),
    ],
    ids=["alone", "older", "an adviser", "its maker", "another version", "another group", "a tie"],
)
def test_target_owner_by_precedence(services: list[Manifest], rivals: dict[str, str]) -> None:
    for order in itertools.permutations(services):
        claims = TargetOwners()
        for one in order:
            claims.saw(one)
        for name, rival in rivals.items():
            assert claims.other_owner(f"uid-{name}") == rival


def test_target_owner_after_the_first_left_is_the_next() -> None:
    claims = TargetOwners()
    for one in (OLD, YOUNG):
        claims.saw(one)
    claims.saw(claimant("old", "10:00:00", target="other"))
    assert claims.other_owner("uid-young") == ""
    claims.saw(OLD)
    claims.forget("uid-old")
    assert claims.other_owner("uid-young") == ""
    claims.forget("uid-old")


@pytest.mark.parametrize("spec", [None, "text", {"targetRef": "text"}, {"targetRef": {}}])
def test_target_owners_accept_any_spec(spec: object) -> None:
    claims = TargetOwners()
    claims.saw(OLD | {"spec": spec})
    assert claims.other_owner("uid-old") == ""
