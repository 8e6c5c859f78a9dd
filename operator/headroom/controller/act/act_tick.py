"""All writes of a tick to a service's objects: drifted children, and replicas.

Each write is guarded. Replicas are written for the Deployment that the decision was made from (its
resourceVersion) or not at all; children are written only if the object of that name is Headroom's.
A rejection by the API server becomes a value, not a crash. A failure to write a Service,
PodDisruptionBudget or ServiceAccount, or to update the Deployment, is reported, and stops neither
the others nor the scaling. But pods get no ServiceAccount of their service's name that is not ours:
who may create InferenceServices, and no more, would have its rights by the choice of a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headroom.api import InferenceService
from headroom.controller.act.adoption import check_owner
from headroom.controller.act.deployment_writer import DeploymentWriter, Overwritten
from headroom.controller.act.field_ownership import is_controlled_by, last_other_writer
from headroom.controller.act.other_children import write_other_children
from headroom.controller.act.rejected_again import asks_to_wait
from headroom.controller.act.scale_writer import replicas_to_write, write_replicas
from headroom.controller.act.state import ActState, DeploymentChanges
from headroom.controller.act.template_change import described
from headroom.controller.act.victims import mark
from headroom.controller.act.write_result import Step, WriteResult
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.scheduling import tick_period
from headroom.controller.scheduling.overwrite_backoff import UNKNOWN_WRITER
from headroom.errors import (
    Conflict,
    Forbidden,
    NamespaceTerminating,
    NotLeading,
    Rejected,
    Unavailable,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The writes of one tick of one service."""

    cluster: Cluster
    service: InferenceService
    children: tuple[Manifest, ...]
    """The desired child objects, the Deployment last."""
    state: ActState
    gathered: Gathered
    replicas: int
    now_s: float
    services: int
    """Number of services: the more there are, the less often other children than the Deployment are
    read."""
    marks_pods: bool
    """Whether pods are marked that a scale-down is to remove first."""
    was_ready: Callable[[], bool]
    """Whether status says that this generation of the spec was in order."""
    was_valid: Callable[[], bool]
    """Whether status says that this generation of the spec was accepted."""

    async def run(self) -> WriteResult:
        """Validate, write children, write replicas; of a targetRef only the replicas.

        Raises ClusterError for anything but a rejection: conflicts, absence, an API that does not
        answer.
        """
        if self.service.spec.target_ref is not None:
            return await self._scale(self.gathered.deployment, self._nothing_written())
        deployment, step = self.gathered.deployment, Step.VALIDATE
        try:
            if deployment is None:
                await self._deployment.validate()
                step = Step.CHILDREN
                return await self._create(await self._write_other_children())
            step = Step.CHILDREN
            check_owner(deployment, self.service)
            if self._may_wait():
                return self._nothing_written()
            return await self._scale(*await self._update(deployment))
        except Rejected as error:
            return replace(self._nothing_written(), refused=step, message=str(error))
        except Forbidden as error:  # says nothing about the spec
            return replace(
                self._nothing_written(),
                refused=Step.CHILDREN,
                message=str(error),
                namespace_ends=isinstance(error, NamespaceTerminating),
            )

    async def _create(self, unapplied: str) -> WriteResult:
        await self._deployment.create(self.replicas)
        return WriteResult(replicas=self.replicas, created=True, unapplied=unapplied)

    @property
    def _deployment(self) -> DeploymentWriter:
        return DeploymentWriter(
            cluster=self.cluster,
            service=self.service,
            manifest=self.children[-1],
            state=self.state,
            now_s=self.now_s,
        )

    async def _write_other_children(self) -> str:
        return await write_other_children(
            self.cluster,
            self.service,
            self.children,
            self.state,
            now_s=self.now_s,
            services=self.services,
            is_new=self.gathered.deployment is None,
        )

    def _nothing_written(self) -> WriteResult:
        return WriteResult(replicas=self.gathered.observation.current)

    def _may_wait(self) -> bool:
        """Return whether unread children can wait because there are many services.

        Only if an earlier process found all in order for this spec, and nothing is to be scaled.
        """
        state = self.state
        changed = replicas_to_write(self.service, self.gathered, self.replicas)
        if state.accepted is not None or changed is not None or not self.was_ready():
            return False
        if state.children_due_s is None:
            delay_s = tick_period.startup_delay_s(self.service.uid, self.services)
            state.children_due_s = self.now_s + delay_s
        return self.now_s < state.children_due_s

    async def _update(self, live: Manifest) -> tuple[Manifest, WriteResult]:
        """Write drifted children; return the Deployment, and the remaining differences.

        A Deployment that is refused stays as it was read: what runs is scaled all the same. No
        child follows a spec whose Deployment is not valid.
        """
        result, validated = self._nothing_written(), False
        try:
            await self._deployment.validate()
            validated = True
            result = replace(result, unapplied=await self._write_other_children())
            undone = self.state.writer.is_undone(self.children[-1], live)
            applied = await self._deployment.apply(live, undone=undone)
        except (Rejected, Forbidden, Unavailable) as error:
            if isinstance(error, NamespaceTerminating | NotLeading) or asks_to_wait(error):
                raise
            if not validated and not self.was_valid():
                self.state.unjudged = self.children[-1]
            rejected = isinstance(error, Rejected) and not validated
            invalid = rejected and self.state.unjudged == self.children[-1]
            unapplied = "; ".join(filter(None, (result.unapplied, str(error))))
            overwritten = isinstance(error, Overwritten)
            return live, replace(
                result, unapplied=unapplied, invalid=invalid, overwritten=overwritten
            )
        changed = described(live, applied)
        self.state.changes = self.state.changes.merged_with(
            adopted=not is_controlled_by(live, self.service.uid),
            changed=changed,
            undone_of=(last_other_writer(live) or UNKNOWN_WRITER) if undone and changed else "",
        )
        if _generation(applied) != _generation(live):
            raise Conflict("the Deployment's spec is not the one that was decided on")
        changes, self.state.changes = self.state.changes, DeploymentChanges()
        return applied, replace(result, changes=changes)

    async def _scale(self, workload: Manifest | None, result: WriteResult) -> WriteResult:
        """Write the replicas of the workload as it was read; return it with the earlier result."""
        changed = replicas_to_write(self.service, self.gathered, self.replicas)
        unmarked = await self._mark(result.replicas if changed is None else changed)
        if workload is None or changed is None:
            return result
        return await write_replicas(
            self.cluster, workload, changed, self.state, result, self.now_s, unmarked=unmarked
        )

    async def _mark(self, replicas: int) -> str:
        if not self.marks_pods:
            return ""
        return await mark(
            self.cluster, self.service, self.state, self.gathered, replicas, self.now_s
        )


def _generation(deployment: Manifest | None) -> int | None:
    """Return the Deployment's generation, which changes with replicas and with the template."""
    return deployment["metadata"].get("generation") if deployment else None
