"""The result of the writes of a tick."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from headroom.controller.act.state import DeploymentChanges


class Step(StrEnum):
    """Write that was rejected."""

    VALIDATE = "validate"
    CHILDREN = "children"
    SCALE = "scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """Result of the writes of a tick."""

    replicas: int
    """Replicas that the workload requests now."""
    created: bool = False
    """Whether the Deployment did not exist before."""
    changes: DeploymentChanges = field(default_factory=DeploymentChanges)
    """Changes of the Deployment since the last result."""
    scaled: bool = False
    refused: Step | None = None
    message: str = ""
    """Why it was rejected, as the API server says."""
    unapplied: str = ""
    """Why a child that exists, or is no Deployment, differs from its manifest; scaling goes on."""
    overwritten: bool = False
    """Whether that is because another client keeps overwriting the Deployment."""
    invalid: bool = False
    """Whether that is because of the spec: its Deployment was never valid."""
    unmarked: str = ""
    """Why pods that a scale-down should take first could not be marked."""
    evicted: str = ""
    """The pod that was evicted because its replica is slow, fails or is overloaded."""
    unevicted: str = ""
    """Why such a pod was not evicted."""
    namespace_ends: bool = False
    """Whether the write was rejected because the namespace is being deleted."""
