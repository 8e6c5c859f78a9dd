"""Checks of obstacles to the end of pods: overlapping budgets, lost nodes, finalizers."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api.reasons import StatusReason
from headroom.api.timestamps import epoch_s
from headroom.cli.commands.doctor.facts import Facts, Manifest, subject, uid
from headroom.cli.commands.doctor.findings import Diagnosis, warning
from headroom.controller.gather.pods.pods import is_held


def pods_have_one_budget(facts: Facts) -> Iterator[Diagnosis]:
    """Find pods that more than one PodDisruptionBudget selects.

    The eviction API answers 500 for them, so kubectl drain never ends.
    """
    for one in facts.services:
        metadata, labels = one["metadata"], _labels_of_pods(facts.targets.get(uid(one)))
        names = sorted(
            budget["metadata"]["name"]
            for budget in facts.budgets
            if budget["metadata"]["namespace"] == metadata["namespace"]
            and labels
            and _selects(budget["spec"].get("selector") or {}, labels)
        )
        if len(names) < 2:
            continue
        own = metadata["name"] if not one["spec"].get("targetRef") else ""
        others = " ".join(name for name in names if name != own)
        yield warning(
            StatusReason.BUDGETS_OVERLAP,
            subject(one),
            f"PodDisruptionBudgets {', '.join(names)} select its pods: Kubernetes evicts no pod "
            "with more than one, so kubectl drain waits, and slow replicas are not replaced",
            f"leave one of them: kubectl delete poddisruptionbudget {others} "
            f"--namespace {metadata['namespace']}",
        )


def pods_end_in_time(facts: Facts) -> Iterator[Diagnosis]:
    """Find pods that should have ended: they serve nothing, and hold their accelerators."""
    for one in facts.services:
        for pod in facts.pods.get(uid(one), ()):
            if facts.now_s is None or not is_held(pod, facts.now_s):
                continue
            minutes = (facts.now_s - epoch_s(pod["metadata"]["deletionTimestamp"])) / 60
            holds, remedy = _held(pod)
            yield warning(
                StatusReason.POD_OVERDUE,
                subject(one),
                f"pod {pod['metadata']['name']} should have ended {minutes:.0f} min ago, and "
                f"{holds}; until it ends it holds its accelerators",
                remedy,
            )


def _held(pod: Manifest) -> tuple[str, str]:
    """Return the obstacle to a pod's end, and the remedy."""
    metadata, node = pod["metadata"], pod.get("spec", {}).get("nodeName", "")
    place = f"{metadata['name']} --namespace {metadata['namespace']}"
    finalizers = ", ".join(metadata.get("finalizers") or ())
    if finalizers:
        remedy = "wait for the controller of the finalizer; without one, remove it: "
        return f"its finalizers hold it: {finalizers}", f"{remedy}kubectl edit pod {place}"
    remedy = f"kubectl describe node {node}; if it does not come back: kubectl delete pod {place}"
    return f"node {node} has not confirmed its end", f"{remedy} --force"


def _labels_of_pods(workload: Manifest | None) -> dict[str, str]:
    template = ((workload or {}).get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def _selects(selector: Manifest, labels: dict[str, str]) -> bool:
    """Return whether a selector selects these labels; one by expressions is not judged."""
    wanted = selector.get("matchLabels") or {}
    return not selector.get("matchExpressions") and wanted.items() <= labels.items()
