"""The operator's caps, and the ceiling of one service that follows from them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.resources.accelerators import NOT_COUNTED
from headroom.scaling.values.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The settings; None means no bound."""

    replicas_per_service: int | None = None
    accelerators: int | None = None
    """Accelerators of all services that this operator keeps, whatever their resource is called."""
    not_counted: tuple[str, ...] = NOT_COUNTED
    """Patterns of extended resources that are no accelerators."""


NO_CAPS = Caps()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most replicas that one service may request now."""

    replicas: int
    why: str = ""
    """Setting that it comes from; empty where it is maxReplicas alone."""
    exceeded: bool = False
    """Whether the service has more than the settings allow."""
    accelerators: bool = False
    """Whether it is what other services leave of `--max-accelerators`."""

    def applied(self, policy: Policy) -> Policy:
        """Return the policy within the ceiling; a decision has room for one replica at least."""
        most = min(policy.max_replicas, max(1, self.replicas))
        return replace(policy, max_replicas=most, min_replicas=min(policy.min_replicas, most))
