"""Facts that the plan for a rollout needs, from the gathered data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.api import InferenceService
from headroom.api.timestamps import epoch_s
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.gather.revisions import Revisions
from headroom.resources import rolling_update
from headroom.resources.object_conditions import condition, is_true, since_s
from headroom.resources.rolling_update import RollingUpdate
from headroom.scaling.values.observation import Pod, PodState


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFacts:
    """Known facts of a Deployment whose rolling update is the operator's choice."""

    now_s: float
    live: RollingUpdate
    """Rolling update that it has now."""
    requested: int
    """Number of replicas that are requested."""
    pods: tuple[Pod, ...]
    starts: bool = False
    """This tick changes the pod template."""
    rolling: bool = False
    """Pods of an earlier template are there."""
    fits: bool = True
    """The operator's limit has room for one more replica."""
    revisions: Revisions | None = None
    """None: not read, or not known."""
    quota_since_s: float | None = None
    """Time since which a quota refuses pods; None if none does."""
    refusal: str = ""
    """Message of the API server that refuses pods."""
    progressed_s: float = 0.0
    """Time of the rollout's last progress."""
    start_s: float
    """Duration of a start, without the wait for a node."""
    has_claim: bool = False
    """The pods mount a PersistentVolumeClaim."""
    grace_s: float
    """Time for which a leaving pod may keep its accelerators."""

    @property
    def none_serves(self) -> bool:
        """Whether there is no replica to keep: none is ready, or may become so."""
        there = [pod for pod in self.pods if pod.state is not PodState.TERMINATING]
        lost = (PodState.BROKEN, PodState.UNSCHEDULABLE)
        return bool(there) and all(pod.state in lost for pod in there)

    @property
    def missing(self) -> int:
        """Number of requested replicas that have no node."""
        placed = sum(pod.scheduled_s is not None for pod in self.pods)
        return max(0, self.requested - placed)


def facts_of(
    service: InferenceService,
    gathered: Gathered,
    manifest: Mapping[str, Any],
    *,
    starts: bool,
    fits: bool,
    start_s: float,
) -> RolloutFacts | None:
    """Return the facts of a tick; None where there is no choice, or no Deployment yet.

    `manifest` is the Deployment as desired.
    """
    live, observation = gathered.deployment, gathered.observation
    if live is None or not rolling_update.is_chosen_here(service, manifest):
        return None
    pod = manifest["spec"]["template"]["spec"]
    return RolloutFacts(
        now_s=observation.now_s,
        live=rolling_update.of(live) or rolling_update.SURGE,
        requested=observation.current,
        pods=observation.pods,
        starts=starts,
        rolling=observation.rolling,
        fits=fits,
        revisions=gathered.revisions,
        quota_since_s=_quota_since_s(live),
        refusal=str(condition(live, "ReplicaFailure").get("message", "")),
        progressed_s=_progressed_s(live),
        start_s=start_s,
        has_claim=any("persistentVolumeClaim" in one for one in pod.get("volumes") or ()),
        grace_s=float(pod.get("terminationGracePeriodSeconds") or 0),
    )


def _quota_since_s(deployment: Mapping[str, Any]) -> float | None:
    failure = condition(deployment, "ReplicaFailure")
    exceeded = is_true(deployment, "ReplicaFailure") and "exceeded quota" in str(
        failure.get("message", "")
    )
    return since_s(failure) or 0.0 if exceeded else None


def _progressed_s(deployment: Mapping[str, Any]) -> float:
    """Return when pods were last added, replaced or ready; the transition is older than that."""
    moment = condition(deployment, "Progressing").get("lastUpdateTime")
    return epoch_s(moment) if moment else 0.0
