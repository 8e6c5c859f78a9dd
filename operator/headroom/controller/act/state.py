"""State of the act step for one service between ticks."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.controller.act.child_writer import ChildWriter
from headroom.controller.ports import Manifest
from headroom.controller.scheduling.overwrite_backoff import OverwriteBackoff
from headroom.errors import ClusterError

SCALED_AGAIN_AFTER_S = 300.0
"""Time after a failed write of replicas during which the service is not asked to yield any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A manifest that the API server rejects."""

    manifest: Manifest
    error: ClusterError
    since_s: float
    """Time when it was rejected first."""
    at_s: float
    """Time when it was rejected last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRefusal:
    """A number of replicas that the API server rejects, or stores as another one."""

    replicas: int
    message: str
    since_s: float
    """Time when it was rejected first."""
    at_s: float
    """Time when it was rejected last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildrenCheck:
    """The last check of the children other than the Deployment."""

    children: tuple[Manifest, ...]
    """The desired children."""
    at_s: float
    next_s: float
    """Time of the next check."""
    trouble: str = ""
    """Reason why one of them is not as desired."""
    passing: bool = False
    """Whether one of them could not be written for a passing reason."""
    refused_since_s: float | None = None
    """Time when one of them was rejected first, if one still is."""

    def is_current(self, children: tuple[Manifest, ...], now_s: float) -> bool:
        """Return whether the check still counts for these children, which are the same tuple."""
        return children is self.children and self.at_s <= now_s < self.next_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentChanges:
    """Changes that an apply made in the Deployment."""

    adopted: bool = False
    """Whether it was an orphan of an earlier service with this name."""
    changed: str = ""
    """Changed fields of its pod template, which is a rollout; empty without a change."""

    undone_of: str = ""
    """Client that had changed it since the apply before, which this one undid; empty if no client
    had."""

    def merged_with(self, *, adopted: bool, changed: str, undone_of: str) -> DeploymentChanges:
        """Return these changes together with those of a later apply."""
        return DeploymentChanges(
            adopted=self.adopted or adopted,
            changed=changed or self.changed,
            undone_of=undone_of if changed else self.undone_of,
        )


@dataclass(slots=True, kw_only=True)
class ActState:
    """Written by the act step only."""

    writer: ChildWriter = field(default_factory=ChildWriter)
    accepted: Manifest | None = None
    """The Deployment that the API server accepted in a dry run."""
    refused: Refusal | None = None
    unjudged: Manifest | None = None
    """The Deployment of a new spec that was not accepted yet: status says so only until a tick is
    reported, also one in which the dry run was not answered."""
    changes: DeploymentChanges = field(default_factory=DeploymentChanges)
    """Changes that no result has reported yet: a tick that changes the Deployment's spec returns
    none."""
    overwrites: OverwriteBackoff[bool] = field(default_factory=OverwriteBackoff)
    """Other writers of the Deployment: whether what was applied is still in force."""
    checked: ChildrenCheck | None = None
    children_due_s: float | None = None
    """Time until which a new process need not check children that an earlier one found in order."""
    scale_failed_s: float | None = None
    """Time when the last write of replicas failed; None if it was accepted."""
    scale_refused: ScaleRefusal | None = None
    evicts_again_s: float = 0.0
    """No pod is evicted before this time, because it was forbidden."""
    eviction_refused: str = ""
    """Reason why it was forbidden, as the API server says."""
    marks_again_s: float = 0.0
    """No pod is marked before this time, because it was forbidden."""

    def can_scale(self, now_s: float) -> bool:
        """Return whether replicas are expected to be accepted; after a while it is tried again."""
        failed_s = self.scale_failed_s
        return failed_s is None or not 0.0 <= now_s - failed_s < SCALED_AGAIN_AFTER_S
