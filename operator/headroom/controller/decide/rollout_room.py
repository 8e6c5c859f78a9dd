"""Detects that a rollout lacks room that an earlier replica would give back, and since when. Pure.

The wait is as long as a start, because in place costs a single replica as long a gap (ski rental:
at most twice the cost of the better choice), plus, once a replica was replaced, the time in which a
leaving pod may keep its accelerators.
"""

from __future__ import annotations

import re

from headroom.controller.decide.rollout_facts import RolloutFacts
from headroom.controller.gather.revisions import Revisions
from headroom.scaling.values.observation import PodState

WAIT_AT_LEAST_S, WAIT_AT_MOST_S = 30.0, 600.0
"""A scheduler tries again within 10 s; a node that comes later than this is not waited for."""
QUOTA_S = 10.0
"""A new node makes no quota larger; an object that leaves one may count for some seconds."""

OTHER_NEEDS = (
    "the surge replica finds no room, and requests more or other resources than an earlier replica "
    "would give back, so none is removed for it: free some, or set rollout.maxSurge to 0"
)
ATTACHED_ELSEWHERE = (
    "if the claim that the surge replica mounts is ReadWriteOnce and an earlier replica on another "
    "node has it (kubectl describe pod), set rollout.maxSurge to 0"
)
_NOT_STARTED = "(ContainerCreating)"
_FREED_BY_A_POD = re.compile(  # as kube-scheduler says it
    r"Insufficient |exceeded quota|free ports|pod anti-affinity rules|ReadWriteOncePod access mode"
)
_LACKS_ACCELERATORS = re.compile(
    r"Insufficient \S+/|cannot allocate all claims|"
    r"exceeded quota: \S+, requested: [^,]+/[^,]+, used"
)


def in_place_s(facts: RolloutFacts) -> float | None:
    """Return until when a rollout waits for room; None where in place would not help it."""
    found = facts.revisions
    if found is None:
        return None
    latest = [pod for pod in facts.pods if pod.uid in found.latest]
    if any(pod.state is PodState.BROKEN for pod in latest):
        return None
    begun = [
        pod.created_s
        for pod in latest
        if pod.state is PodState.UNSCHEDULABLE and _helps(pod.detail, found)
    ]
    if begun and not facts.live.is_in_place and facts.none_serves:
        return facts.now_s
    start_s = min(max(facts.start_s, WAIT_AT_LEAST_S), WAIT_AT_MOST_S)
    waits = [(since_s, start_s) for since_s in begun]
    if facts.quota_since_s is not None and _helps(facts.refusal, found):
        waits.append((facts.quota_since_s, QUOTA_S))
    replaced = any(pod.state is PodState.READY for pod in latest)
    grace_s = facts.grace_s if replaced or facts.live.is_in_place else 0.0
    due = [max(since_s, facts.progressed_s) + for_s + grace_s for since_s, for_s in waits]
    return min(due, default=None)


def _helps(detail: str, found: Revisions) -> bool:
    """Return whether any earlier pod would free the resources that a pod lacks."""
    if _LACKS_ACCELERATORS.search(detail):
        return found.gives_accelerators
    return found.gives_all and _FREED_BY_A_POD.search(detail) is not None


def held_back(facts: RolloutFacts) -> str:
    """Say why a surge replica may wait for good, and in place would help; empty if none does."""
    if facts.has_claim and any(_NOT_STARTED in pod.detail for pod in facts.pods):
        return ATTACHED_ELSEWHERE
    found = facts.revisions
    if found is None or found.gives_all:
        return ""
    said = [
        pod.detail
        for pod in facts.pods
        if pod.uid in found.latest and pod.state is PodState.UNSCHEDULABLE
    ]
    lacks = any(_FREED_BY_A_POD.search(one) for one in (*said, facts.refusal))
    return OTHER_NEEDS if lacks else ""
