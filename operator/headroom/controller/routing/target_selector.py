"""The selector by which a Service leads to the pods of a target. Pure."""

from __future__ import annotations

import re

from headroom.controller.gather.workloads.workload import Workload

_EQUALITY = re.compile(r"([^\s=!,()]+)==?([^\s=!,()]*)")


def service_selector(workload: Workload) -> dict[str, str] | None:
    """Return it; None where a Service cannot say it.

    A Service's selector has no expressions. What a workload's expressions select has the labels of
    its template: `tier in (gold, free)` and a template with `tier: gold` becomes `tier: gold`.
    """
    spec = workload.manifest.get("spec") or {}
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if isinstance(selector, dict) and isinstance(labels, dict):
        keys = [*(selector.get("matchLabels") or ())]
        keys += [one["key"] for one in selector.get("matchExpressions") or ()]
        return {key: labels[key] for key in keys if key in labels} or None
    terms = [_EQUALITY.fullmatch(term.strip()) for term in workload.selector.split(",")]
    if not all(terms):
        return None
    return {term[1]: term[2] for term in terms if term}
