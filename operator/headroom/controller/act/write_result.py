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
    """Reason why it was rejected, as the API server says."""
    unapplied: str = ""
    """Reason why an existing child, or one other than the Deployment, was not applied."""
    overwritten: bool = False
    """Whether that is because another client keeps overwriting the Deployment."""
    invalid: bool = False
    """Whether that is because of the spec: its Deployment was never valid."""
    unmarked: str = ""
    """Reason why pods that a scale-down should take first could not be marked."""
    evicted: str = ""
    """The pod that was evicted because its replica is slow, fails or is overloaded."""
    unevicted: str = ""
    """Reason why such a pod was not evicted."""
    namespace_ends: bool = False
    """Whether the write was rejected because the namespace is being deleted."""
