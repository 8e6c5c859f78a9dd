"""Rolling update of a Deployment after a change of its pod template. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.api import InferenceService
from headroom.resources import accelerators

Share = int | str
"""Replicas, as a number or as a share of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingUpdate:
    """The parameters of a RollingUpdate."""

    surge: Share
    """Replicas that start beyond the requested ones."""
    unavailable: Share
    """Replicas that may be missing."""

    @property
    def is_in_place(self) -> bool:
        """Whether a replica leaves before the one in its place starts."""
        return self.surge in (0, "0%")

    def manifest(self) -> dict[str, Any]:
        """Return it as Kubernetes has it."""
        return {"maxSurge": self.surge, "maxUnavailable": self.unavailable}


SURGE = RollingUpdate(surge=1, unavailable=0)
"""A new replica is ready before an old one leaves; it needs free accelerators."""


def in_place(missing: int = 0) -> RollingUpdate:
    """Return the one that replaces one replica at a time, besides those that are `missing` anyway.

    Kubernetes counts these as unavailable, too: with 2 of 3 replicas on a node, a maxUnavailable of
    1 would replace none.
    """
    return RollingUpdate(surge=0, unavailable=1 + missing)


def is_chosen_here(service: InferenceService, manifest: Mapping[str, Any]) -> bool:
    """Return whether the operator chooses: no choice in the spec, accelerators in replicas."""
    given = service.spec.rollout
    if service.spec.target_ref is not None:
        return False
    free = given.max_surge is None and given.max_unavailable is None
    return free and bool(accelerators.of_workload(manifest))


def of(deployment: Mapping[str, Any]) -> RollingUpdate | None:
    """Return that of a Deployment; None where it has none, or only a part."""
    strategy = (deployment.get("spec") or {}).get("strategy") or {}
    given = strategy.get("rollingUpdate") or {}
    surge, unavailable = given.get("maxSurge"), given.get("maxUnavailable")
    if surge is None or unavailable is None:
        return None
    return RollingUpdate(surge=surge, unavailable=unavailable)


def with_update(manifest: dict[str, Any], update: RollingUpdate) -> dict[str, Any]:
    """Return the Deployment with this rolling update; the same one where it has it already."""
    if of(manifest) == update:
        return manifest
    strategy = {"type": "RollingUpdate", "rollingUpdate": update.manifest()}
    return manifest | {"spec": {**manifest["spec"], "strategy": strategy}}
