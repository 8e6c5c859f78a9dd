"""Checks of nodes: whether they have the accelerators that replicas need, and take pods."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus
from headroom.cli.commands.doctor.facts import Facts, Manifest, service_status, subject
from headroom.cli.commands.doctor.findings import Diagnosis, note, problem
from headroom.resources import accelerators


def nodes_take_pods(facts: Facts) -> Iterator[Diagnosis]:
    """Find drained and lost nodes with the accelerators for which replicas of a service wait."""
    for one in facts.services:
        if not (waiting := _waiting(one)):
            continue
        held = [name for name in accelerators.of_stored(one["spec"]) if name != accelerators.CLAIM]
        for name in sorted(held):
            closed = [node for node in facts.nodes if _why_closed(node) and _devices(node, name)]
            if not closed:
                continue
            named = [f"{node['metadata']['name']} ({_why_closed(node)})" for node in closed]
            more = f" and {len(named) - 5} more" if len(named) > 5 else ""
            number = sum(_devices(node, name) for node in closed)
            steps = sorted({_STEPS[_why_closed(node)] for node in closed}, reverse=True)
            yield problem(
                StatusReason.NODES_UNAVAILABLE,
                subject(one),
                f"nodes with {number} {name} take no pods: {', '.join(named[:5])}{more}; {waiting}",
                f"{'; '.join(steps)}; or add nodes",
            )


def accelerators_exist(facts: Facts) -> Iterator[Diagnosis]:
    """Find replicas that fit no node, and minReplicas that exceed all nodes together."""
    if not facts.was_read("Node"):
        return
    needed: defaultdict[str, int] = defaultdict(int)
    for one in facts.services:
        if one["spec"].get("targetRef"):
            continue
        least = _whole((one["spec"].get("scaling") or {}).get("minReplicas"), 1)
        for name, count in sorted(accelerators.of_stored(one["spec"]).items()):
            if name == accelerators.CLAIM:  # devices of claims are no resource of the node
                continue
            needed[name] += least * count
            largest = max((_devices(node, name) for node in facts.nodes), default=0)
            if largest < count:
                yield problem(
                    StatusReason.NO_ACCELERATORS,
                    subject(one),
                    f"a replica needs {count} {name}, and the largest node has {largest}",
                    f"add nodes with {name}, install its device plugin, or change "
                    "spec.accelerator (count: 0 needs none)",
                )
    for name, number in sorted(needed.items()):
        total = sum(_devices(node, name) for node in facts.nodes if not _why_closed(node))
        if 0 < total < number:
            yield note(
                StatusReason.INSUFFICIENT_ACCELERATORS,
                name,
                f"minReplicas of all services need {number}, and the nodes have {total}",
                "add nodes, or lower spec.scaling.minReplicas; spec.scaling.priority decides which "
                "service gets them",
            )


_FOR_ROOM = re.compile(r"Insufficient |were unschedulable|node\.kubernetes\.io/")
_STEPS = {
    "cordoned": "kubectl uncordon those that are cordoned, once their maintenance is over",
    "not ready": "kubectl describe node for those that are not ready",
}


def _waiting(one: Manifest) -> str:
    """Return the scheduler's message about replicas without a node with room; empty if none."""
    messages = (
        each.message
        for each in service_status(one).conditions
        if each.reason == StatusReason.REPLICAS_UNSCHEDULABLE
        and each.status is ConditionStatus.FALSE
    )
    return next((message for message in messages if _FOR_ROOM.search(message)), "")


def _why_closed(node: Manifest) -> str:
    """Return why a node takes no pods; empty if it does, or did not say."""
    if node.get("spec", {}).get("unschedulable"):
        return "cordoned"
    conditions = node.get("status", {}).get("conditions") or ()
    lost = any(one["type"] == "Ready" and one["status"] != "True" for one in conditions)
    return "not ready" if lost else ""


def _devices(node: Manifest, name: str) -> int:
    return accelerators.devices((node.get("status", {}).get("allocatable") or {}).get(name, 0))


def _whole(value: object, missing: int) -> int:
    """Return a number of the spec as the operator reads it: 0 replicas are one, to start with."""
    return value if isinstance(value, int) and value > 0 else missing
