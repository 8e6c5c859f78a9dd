"""Pauses after overwrites: begin and end, blocked writes, and requested replicas."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api.reasons import StatusReason
from headroom.controller.decide.external_scaling import next_replicas
from headroom.controller.decide.scaling_conflicts import conflict, overridden
from headroom.controller.scheduling.overwrite_backoff import OverwriteBackoff
from headroom.controller.services.target_owners import TargetOwners
from support.service_world import service

NOW_S = 1_800_000_000.0
OVERWRITTEN = OverwriteBackoff(by="argocd", instead=5, until_s=NOW_S + 60.0, pause_s=300.0)


@pytest.mark.parametrize(
    ("undone_s", "pauses"),
    [((), False), ((900.0,), False), ((400.1, 900.0), True), ((400.0, 900.0), False)],
    ids=["the first", "the second", "the third", "the third, the first ten minutes ago"],
)
def test_three_overwrites_within_ten_minutes_start_a_pause(
    undone_s: tuple[float, ...], pauses: bool
) -> None:
    before = OverwriteBackoff(ours=5, undone_s=undone_s)
    after = before.observe(2, "argocd", by_us=False, now_s=1000.0)
    assert (after.ours, after.by, after.instead) == (None, "argocd", 5)
    assert after.pause_s == (300.0 if pauses else 0.0)
    assert after.until_s == (1300.0 if pauses else 0.0)
    assert after.undone_s == (() if pauses else (*(u for u in undone_s if u > 400.0), 1000.0))


@pytest.mark.parametrize(
    ("pause_s", "next_s"), [(0.5, 300.0), (300.0, 600.0), (1800.0, 3600.0), (1900.0, 3600.0)]
)
def test_pause_after_another_overwrite_doubles_up_to_an_hour(pause_s: float, next_s: float) -> None:
    after = OverwriteBackoff(ours=5, pause_s=pause_s).observe(2, "", by_us=False, now_s=1000.0)
    assert (after.pause_s, after.until_s, after.by) == (next_s, 1000.0 + next_s, "another client")


@pytest.mark.parametrize(("now_s", "pause_s"), [(599.9, 300.0), (600.0, 0.0)])
def test_ten_minutes_without_overwrite_reset_the_backoff(now_s: float, pause_s: float) -> None:
    fought = OverwriteBackoff(ours=5, wrote_s=0.0, undone_s=(1.0,), pause_s=300.0)
    after = fought.observe(5, "", by_us=False, now_s=now_s)
    assert after.pause_s == pause_s
    assert after.undone_s == ((1.0,) if pause_s else ())


@pytest.mark.parametrize(
    ("now_s", "paused"),
    [(-0.1, False), (0.0, True), (299.9, True), (300.0, False)],
    ids=["the clock went back", "it begins", "it lasts", "it is over"],
)
def test_first_pause_lasts_five_minutes(now_s: float, paused: bool) -> None:
    assert OverwriteBackoff(until_s=300.0, pause_s=300.0).is_paused(now_s) is paused


@pytest.mark.parametrize(("by_us", "replicas"), [(True, 5), (False, 5)])
def test_unchanged_replicas_are_no_new_write(by_us: bool, replicas: int) -> None:
    ours = OverwriteBackoff(ours=5, wrote_s=7.0)
    assert ours.observe(replicas, "", by_us=by_us, now_s=9.0) == ours


def _conflict(mode: str = "Auto", least: int = 1, **changes: Any) -> tuple[str, str]:
    scaling: dict[str, Any] = {"mode": mode, "minReplicas": least}
    requested = {"spec__replicas": 2} if mode == "External" else {}
    asked: dict[str, Any] = {
        "owner": "",
        "autoscaler": "",
        "replicas": 2,
        "backoff": OverwriteBackoff(),
        "now_s": NOW_S,
    }
    found = conflict(service(spec__scaling=scaling, **requested), **(asked | changes))
    return ("", "") if found is None else (str(found.reason), found.message)


ZERO: dict[str, Any] = {"replicas": 0}
WROTE_ZERO: dict[str, Any] = {"replicas": 0, "backoff": OverwriteBackoff(ours=0)}


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({}, ""),
        ({"owner": "a", "autoscaler": "b", **ZERO}, StatusReason.TARGET_ALREADY_MANAGED),
        ({"owner": "a", "mode": "Recommend"}, StatusReason.TARGET_ALREADY_MANAGED),
        ({"autoscaler": "b", "mode": "Recommend"}, ""),
        ({"autoscaler": "b", **ZERO}, StatusReason.AUTOSCALER_CONFLICT),
        (ZERO, StatusReason.SCALING_DISABLED),
        ({"replicas": 1}, ""),
        (WROTE_ZERO, ""),
        ({"backoff": OVERWRITTEN, **ZERO}, StatusReason.SCALING_DISABLED),
        ({"backoff": OVERWRITTEN}, StatusReason.REPLICAS_REPEATEDLY_OVERWRITTEN),
        ({"backoff": OVERWRITTEN, "now_s": NOW_S + 61.0}, ""),
        (
            {"backoff": OVERWRITTEN, "mode": "External"},
            StatusReason.REPLICAS_REPEATEDLY_OVERWRITTEN,
        ),
    ],
)
def test_conflict_is_the_first_match(case: dict[str, Any], reason: str) -> None:
    assert _conflict(**case)[0] == reason


def test_conflict_message_names_count_and_end() -> None:
    said = _conflict(backoff=OVERWRITTEN)[1]
    assert "argocd keeps overwriting" in said
    assert "(3 times within 10 min, or again after a pause)" in said
    assert "none are written before 2027-01-15T08:01:00Z" in said


@pytest.mark.parametrize(
    ("backoff", "said"),
    [
        (OverwriteBackoff(), ""),
        (OverwriteBackoff(by="x", instead=5, ours=7), ""),
        (OverwriteBackoff(by="x", instead=5), "x changed the replicas from 5 to 3, which is kept"),
    ],
)
def test_overridden_replicas_name_the_writer(backoff: OverwriteBackoff[int], said: str) -> None:
    assert overridden(backoff, 3).startswith(said)
    assert bool(overridden(backoff, 3)) is bool(said)


RATE_UP = {"scaleUp": {"rate": {"period": "1m", "replicas": 2}}}
PERCENT_UP = {"scaleUp": {"rate": {"period": "1m", "percent": 30}}}
RATE_DOWN = {"scaleDown": {"rate": {"period": "1m", "replicas": 2}}}


@pytest.mark.parametrize(
    ("requested", "current", "scaling", "changes", "asked"),
    [
        (9, 3, {"minReplicas": 4, "maxReplicas": 9}, [], 9),
        (9, 5, RATE_UP, [(900.0, 3), (940.0, 5)], 7),  # at the very beginning of the period
        (9, 5, RATE_UP, [(900.0, 3), (940.1, 5)], 5),
        (9, 3, RATE_UP, [(900.0, 5), (980.0, 3)], 5),  # a removal gives none back
        (9, 5, RATE_UP, [(950.0, 5), (980.0, 5)], 7),  # shorter than a period is known
        (9, 4, PERCENT_UP, [], 6),  # 30 % of four are two
        (5, 4, RATE_UP, [], 5),
        (1, 9, RATE_DOWN, [(900.0, 9)], 7),
        (1, 8, RATE_DOWN, [(900.0, 9), (980.0, 8)], 7),
        (1, 9, RATE_DOWN, [(900.0, 8), (980.0, 9)], 7),
        (8, 9, RATE_DOWN, [], 8),
        (1, 5, RATE_DOWN, [(900.0, 9), (980.0, 5)], 5),  # more has gone than may
    ],
)
def test_external_replicas_are_followed_by_rate(
    requested: int,
    current: int,
    scaling: dict[str, Any],
    changes: list[tuple[float, int]],
    asked: int,
) -> None:
    spec = {"mode": "External", "maxReplicas": 10, **scaling}
    found = service(spec__replicas=requested, spec__scaling=spec)
    assert next_replicas(found, current, changes, 1000.0, min_replicas=1) == asked


def claimant(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}},
    }


def test_recommend_mode_or_unknown_service_has_no_other_owner() -> None:
    claims = TargetOwners()
    first = claimant("a", creationTimestamp="2026-01-01T00:00:00Z")
    adviser = claimant("b", creationTimestamp="2025-01-01T00:00:00Z")
    adviser["spec"]["scaling"] = {"mode": "Recommend"}
    for one in (first, adviser):
        claims.saw(one)
    assert (
        claims.other_owner("uid-a"),
        claims.other_owner("uid-b"),
        claims.other_owner("none"),
    ) == ("", "", "")
    elsewhere = claimant("c", creationTimestamp="2024-01-01T00:00:00Z")
    elsewhere["metadata"]["namespace"] = "other"
    claims.saw(elsewhere)
    assert claims.other_owner("uid-a") == ""
