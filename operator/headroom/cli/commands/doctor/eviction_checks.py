"""Checks of what keeps nodes from being drained."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.facts import Facts, Manifest, subject, uid
from headroom.cli.commands.doctor.findings import Diagnosis, warning


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


def _labels_of_pods(workload: Manifest | None) -> dict[str, str]:
    template = ((workload or {}).get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def _selects(selector: Manifest, labels: dict[str, str]) -> bool:
    """Whether a selector selects these labels; one by expressions is not judged."""
    wanted = selector.get("matchLabels") or {}
    return not selector.get("matchExpressions") and wanted.items() <= labels.items()
