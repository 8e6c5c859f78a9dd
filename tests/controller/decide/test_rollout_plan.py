"""The plan of a rollout: a surge replica first, in place only where that helps."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.decide.rollout import plan
from headroom.controller.decide.rollout_facts import RolloutFacts
from headroom.controller.gather.revisions import Revisions
from headroom.resources.rolling_update import SURGE, RollingUpdate, in_place
from headroom.scaling.values.observation import Pod, PodState

NOW_S, START_S, GRACE_S = 10_000.0, 60.0, 40.0
LATEST = Revisions(latest=frozenset({"n1", "n2"}))
NO_GPU = "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
QUOTA = (
    "exceeded quota: team, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1"
)
CPU_QUOTA = "exceeded quota: team, requested: requests.cpu=9, used: requests.cpu=4"
READY, LATE = PodState.READY, 61.0


def pod(uid: str, state: PodState = READY, *, age_s: float = 500.0, detail: str = "") -> Pod:
    placed = state is not PodState.UNSCHEDULABLE
    return Pod(
        uid=uid,
        state=state,
        created_s=NOW_S - age_s,
        scheduled_s=NOW_S - age_s if placed else None,
        detail=detail,
    )


def waiting(uid: str = "n1", *, age_s: float = LATE, detail: str = NO_GPU) -> Pod:
    return pod(uid, PodState.UNSCHEDULABLE, age_s=age_s, detail=detail)


def facts(*pods: Pod, **changes: Any) -> RolloutFacts:
    """Return a rollout of one replica in a cluster without a free accelerator."""
    usual: dict[str, Any] = {
        "now_s": NOW_S,
        "live": SURGE,
        "requested": 1,
        "pods": pods,
        "rolling": True,
        "revisions": LATEST,
        "start_s": START_S,
        "grace_s": GRACE_S,
    }
    return RolloutFacts(**(usual | changes))


@pytest.mark.parametrize(
    ("found", "update"),
    [
        # a change of the template
        (facts(pod("o1"), starts=True, rolling=False), SURGE),
        (facts(pod("o1"), starts=True, rolling=False, fits=False), in_place()),
        (facts(pod("o1", PodState.BROKEN), starts=True, rolling=False), in_place()),
        (facts(pod("o1", PodState.WARMING), starts=True, rolling=False), SURGE),
        (facts(starts=True, rolling=False, requested=0), SURGE),
        # the scheduler refuses the surge replica
        (facts(pod("o1"), waiting(age_s=59.0)), SURGE),
        (facts(pod("o1"), waiting()), in_place()),
        (facts(pod("o1"), waiting(), progressed_s=NOW_S - 59.0), SURGE),
        (facts(pod("o1"), waiting(age_s=29.0), start_s=2.0), SURGE),
        (facts(pod("o1"), waiting(age_s=31.0), start_s=2.0), in_place()),
        (facts(pod("o1"), waiting(age_s=599.0), start_s=9000.0), SURGE),
        (facts(pod("o1"), waiting(age_s=601.0), start_s=9000.0), in_place()),
        (facts(pod("o1"), waiting(detail="3 Insufficient cpu.")), in_place()),
        (facts(pod("o1"), waiting(detail="3 node(s) didn't have free ports")), in_place()),
        # a replica was replaced before: the one that left may still hold its accelerator
        (facts(pod("o1"), pod("n1"), waiting("n2"), requested=2), SURGE),
        (facts(pod("o1"), pod("n1"), waiting("n2", age_s=101.0), requested=2), in_place()),
        # no earlier replica serves, so that there is none to keep
        (facts(pod("o1", PodState.BROKEN), waiting(age_s=1.0)), in_place()),
        # two of three have a node, so that one is unavailable anyway
        (
            facts(pod("o1"), pod("o2"), waiting("o3"), waiting(), requested=3),
            in_place(1),
        ),
        # a quota refuses it
        (facts(pod("o1"), quota_since_s=NOW_S - 9.0, refusal=QUOTA), SURGE),
        (facts(pod("o1"), quota_since_s=NOW_S - 11.0, refusal=QUOTA), in_place()),
        # what in place would not help
        (facts(pod("o1"), pod("n1", PodState.BROKEN)), SURGE),
        (facts(pod("o1"), pod("n1", PodState.BROKEN), waiting("n2")), SURGE),
        (facts(pod("o1"), pod("n1", PodState.WARMING, age_s=9000.0)), SURGE),
        (facts(pod("o1"), waiting("o2")), SURGE),
        (facts(pod("o1"), waiting(detail="3 node(s) didn't match Pod's node affinity")), SURGE),
        (facts(pod("o1"), waiting(), revisions=None), SURGE),
        # in place, to its end
        (facts(pod("o1"), waiting(age_s=1.0), live=in_place()), in_place()),
        (facts(pod("o1"), starts=True, live=in_place()), in_place()),
        (facts(pod("n1"), live=in_place(), rolling=False), SURGE),
        (facts(pod("n1"), live=in_place(), rolling=False, fits=False), in_place()),
        (facts(pod("n1"), live=SURGE, rolling=False, fits=False), SURGE),
        # what leaves makes room a moment later, so that nothing more is removed for it
        (
            facts(pod("o1"), pod("o2"), waiting(), live=in_place(), requested=3),
            in_place(),
        ),
        (
            facts(pod("o1"), pod("o2"), waiting(age_s=101.0), live=in_place(), requested=3),
            in_place(1),
        ),
        (facts(pod("o1"), pod("n1"), live=in_place(3), requested=2), in_place()),
    ],
)
def test_update_that_a_rollout_gets(found: RolloutFacts, update: RollingUpdate) -> None:
    assert plan(found).update == update


@pytest.mark.parametrize(
    ("detail", "revisions", "helps"),
    [
        (NO_GPU, {"gives_all": False}, True),
        (NO_GPU, {"gives_accelerators": False, "gives_all": False}, False),
        ("3 Insufficient memory.", {"gives_all": False}, False),
        (QUOTA, {"gives_all": False}, True),
        (QUOTA, {"gives_accelerators": False, "gives_all": False}, False),
        (CPU_QUOTA, {"gives_all": False}, False),
    ],
)
def test_nothing_is_removed_for_a_replica_that_would_not_fit_in_its_place(
    detail: str, revisions: dict[str, bool], *, helps: bool
) -> None:
    found = Revisions(latest=LATEST.latest, **revisions)
    surging = [waiting(detail=detail)] if "quota" not in detail else []
    since_s = NOW_S - 11.0 if "quota" in detail else None
    planned = plan(
        facts(pod("o1"), *surging, revisions=found, quota_since_s=since_s, refusal=detail)
    )
    assert planned.update.is_in_place == helps
    assert helps or "set rollout.maxSurge to 0" in planned.why


def test_only_a_rollout_with_a_surge_counts_a_replica_more() -> None:
    assert plan(facts(pod("o1"))).surges
    assert not plan(facts(pod("o1"), rolling=False)).surges
    assert not plan(facts(pod("o1"), waiting())).surges


@pytest.mark.parametrize("has_claim", [True, False])
def test_volume_that_another_node_has_is_a_hint_and_costs_no_replica(*, has_claim: bool) -> None:
    slow = pod("n1", PodState.WARMING, detail="container a has not started (ContainerCreating)")
    planned = plan(facts(pod("o1"), slow, revisions=None, has_claim=has_claim))
    assert planned.update == SURGE
    assert ("ReadWriteOnce" in planned.why) == has_claim
