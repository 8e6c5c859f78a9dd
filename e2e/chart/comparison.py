"""Compares the objects of the chart and the plain manifests, apart from what Helm adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

ADDED_LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}
ADDED_ANNOTATIONS = {"helm.sh/resource-policy"}

Identity = tuple[str, str, str]


def identity(manifest: Mapping[str, Any]) -> Identity:
    """Return kind, namespace and name."""
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def by_identity(manifests: Iterable[Mapping[str, Any]]) -> dict[Identity, dict[str, Any]]:
    """Return the manifests without what Helm adds."""
    return {identity(each): _plain(each) for each in manifests}


def _plain(manifest: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = _without_labels(manifest)
    annotations = plain["metadata"].pop("annotations", {})
    kept = {key: value for key, value in annotations.items() if key not in ADDED_ANNOTATIONS}
    if kept:
        plain["metadata"]["annotations"] = kept
    return plain


def _without_labels(value: Any) -> Any:
    """Return a copy without the added labels on objects, in templates and in selectors."""
    if isinstance(value, Mapping):
        return {k: _without_labels(v) for k, v in value.items() if k not in ADDED_LABELS}
    if isinstance(value, list):
        return [_without_labels(each) for each in value]
    return value
