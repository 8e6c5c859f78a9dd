"""A ready replica that is slow, fails or is overloaded, and its replacement, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Defect(StrEnum):
    """Defect of a ready replica, compared with the others."""

    SLOW = "Slow"
    """It takes far longer for the same batches."""
    FAILING = "Failing"
    """It takes requests and answers none, or only with errors, while the others answer theirs."""
    OVERLOADED = "Overloaded"
    """The replica itself is healthy: connections stay with it, and other replicas have hardly
    any."""


class ReplacementStep(StrEnum):
    """Action on a replica that is slow, fails or is overloaded."""

    KEPT = "Kept"
    """Nothing happens: it is only named."""
    SURGE = "Surge"
    """One more replica is started first."""
    DELETE = "Delete"
    """The pod must be deleted now; its workload creates another."""
    START = "Start"
    """The pod is gone, and another one is starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A ready replica that is far slower than the others or fails, and the action on it."""

    pod: str
    """The pod's UID."""
    defect: Defect
    step: ReplacementStep
    factor: float | None
    """Its time over that of the others; None where it answers nothing."""
    since_s: float
    """Time when it was first suspected."""
    detail: str
    """The defect as text: takes 10.2x as long as the others."""
    action: str
    """Action as text, or why there is none."""

    @property
    def deletes(self) -> bool:
        """Whether the pod must be deleted now."""
        return self.step is ReplacementStep.DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A ready replica whose sample the decision does not use, and why."""

    pod: str
    """The pod's UID."""
    why: str
