"""All writes of a tick to what a service owns: drifted children, and replicas.

Each write is guarded. Replicas are written for the Deployment that the decision was made from (its
resourceVersion) or not at all; children are written only if the object of that name is ours. A
rejection by the API server becomes a value, not a crash. A failure to write a Service,
PodDisruptionBudget or ServiceAccount, or to update the Deployment, is reported, and stops neither
the others nor the scaling. But pods get no ServiceAccount of their service's name that is not ours:
who may create InferenceServices, and no more, would have its rights by the choice of a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from headroom.api import InferenceService
from headroom.api.timestamps import rfc3339
from headroom.controller.act.adoption import NotOurs, check_owner
from headroom.controller.act.field_ownership import is_controlled_by, last_other_writer
from headroom.controller.act.state import ActState, ChildrenCheck, News, Refusal
from headroom.controller.act.template_change import described
from headroom.controller.act.victims import mark
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.scheduling import tick_period
from headroom.controller.scheduling.overwrite_backoff import UNDONE, UNKNOWN_WRITER, WITHIN_S
from headroom.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NamespaceTerminating,
    NotLeading,
    Rejected,
    Unavailable,
)
from headroom.resources import deployment as deployments
from headroom.resources.names import FIELD_MANAGER, SCALER_FIELD_MANAGER
from headroom.resources.service_account import runs_as

TROUBLED_AGAIN_AFTER_S = 6.0
"""A child that could not be read or written for a passing reason is tried again after this."""
REFUSED_AGAIN_SHARE, REFUSED_AGAIN_S = 1.0 / 15.0, (4.0, 60.0)
"""A rejected manifest is sent again after this share of the time since its first rejection: every
4 s in the first minute, at most once a minute later. A hiccup ends soon, a quota changes slowly.
With many services the other children are tried less often, as they are checked less often."""


class Overwritten(Rejected):
    """Another client keeps overwriting the Deployment, and each repair would replace its pods."""


class Step(StrEnum):
    """Which write was rejected."""

    VALIDATE = "validate"
    CHILDREN = "children"
    SCALE = "scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What was written."""

    replicas: int
    """What the workload requests now."""
    created: bool = False
    """The Deployment did not exist before."""
    news: News = field(default_factory=News)
    """What became of the Deployment since the last result."""
    scaled: bool = False
    refused: Step | None = None
    message: str = ""
    """Why it was rejected, as the API server says."""
    unapplied: str = ""
    """Why a child that exists, or is no Deployment, is not as desired: this stops no scaling."""
    overwritten: bool = False
    """It is because another client keeps overwriting the Deployment."""
    invalid: bool = False
    """It is because of the spec: its Deployment was never valid."""
    unmarked: str = ""
    """Why pods that a scale-down should take first could not be marked."""
    evicted: str = ""
    """The pod that was evicted because its replica is slow, fails or is overloaded."""
    unevicted: str = ""
    """Why such a pod was not evicted."""
    namespace_ends: bool = False
    """It was rejected because the namespace is being deleted."""


def may_scale(service: InferenceService, gathered: Gathered) -> bool:
    """Whether there is a workload whose replicas are ours to write."""
    deployment = gathered.deployment
    if deployment is None or deployment["metadata"].get("deletionTimestamp"):
        return False
    if service.spec.scaling.mode == "Recommend":
        return False
    return service.spec.target_ref is not None or is_controlled_by(deployment, service.uid)


def replicas_to_write(service: InferenceService, gathered: Gathered, replicas: int) -> int | None:
    """Return what to write to /scale, or None: nothing changes, or nothing may."""
    changed = replicas != gathered.observation.current
    return replicas if changed and may_scale(service, gathered) else None


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
    """How many there are: the more, the less often children other than the Deployment are read."""
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
                await self._validate()
                step = Step.CHILDREN
                return await self._create_deployment(await self._write_other_children())
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

    def _nothing_written(self) -> WriteResult:
        return WriteResult(replicas=self.gathered.observation.current)

    def _may_wait(self) -> bool:
        """Whether children that this process has not read yet can wait: there are many services.

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
        """Write what drifted; return the Deployment as it is then, and what is not as desired.

        A Deployment that is refused stays as it was read: what runs is scaled all the same. No
        child follows a spec whose Deployment is not valid.
        """
        result, validated = self._nothing_written(), False
        try:
            await self._validate()
            validated = True
            result = replace(result, unapplied=await self._write_other_children())
            undone = self.state.writer.is_undone(self.children[-1], live)
            applied = await self._apply_deployment(live, undone=undone)
        except (Rejected, Forbidden, Unavailable) as error:
            if isinstance(error, NamespaceTerminating | NotLeading) or _asks_to_wait(error):
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
        self.state.news = self.state.news.and_also(
            adopted=not is_controlled_by(live, self.service.uid),
            changed=changed,
            undone_of=(last_other_writer(live) or UNKNOWN_WRITER) if undone and changed else "",
        )
        if _generation(applied) != _generation(live):
            raise Conflict("the Deployment's spec is not the one that was decided on")
        news, self.state.news = self.state.news, News()
        return applied, replace(result, news=news)

    async def _scale(self, workload: Manifest | None, result: WriteResult) -> WriteResult:
        """Write the replicas of the workload as it was read; return it with the earlier result."""
        changed = replicas_to_write(self.service, self.gathered, self.replicas)
        unmarked = await self._mark(result.replicas if changed is None else changed)
        if workload is None or changed is None:
            return result
        try:
            answer = await self.cluster.apply_scale(
                workload, changed, field_manager=SCALER_FIELD_MANAGER
            )
        except (Rejected, Forbidden, Unavailable) as error:
            self.state.scale_failed_s = self.now_s
            if isinstance(error, Unavailable):
                raise
            return replace(result, refused=Step.SCALE, message=str(error))
        stored = int((answer.get("spec") or {}).get("replicas", 0))
        scaled = replace(
            result, replicas=stored, scaled=stored != result.replicas, unmarked=unmarked
        )
        if stored != changed:
            self.state.scale_failed_s = self.now_s
            said = (
                f"{changed} replicas were written and {stored} are stored: an admission policy or "
            )
            said += "webhook changes them"
            return replace(scaled, refused=Step.SCALE, message=said)
        self.state.scale_failed_s = None
        return scaled

    async def _mark(self, replicas: int) -> str:
        if not self.marks_pods:
            return ""
        return await mark(
            self.cluster, self.service, self.state, self.gathered, replicas, self.now_s
        )

    async def _validate(self) -> None:
        """Have the API server check a new Deployment before anything is written.

        A schema cannot check podTemplate.
        """
        manifest, state, now_s = self.children[-1], self.state, self.now_s
        if manifest == state.accepted:
            return
        refused = state.refused
        if refused and refused.manifest != manifest:
            refused = None
        if refused and now_s - refused.at_s < _again_after_s(refused.at_s - refused.since_s):
            raise refused.error
        try:
            await self.cluster.apply(manifest, field_manager=FIELD_MANAGER, dry_run=True)
        except (Rejected, Forbidden) as error:
            since_s = refused.since_s if refused else now_s
            state.refused = Refusal(manifest=manifest, error=error, since_s=since_s, at_s=now_s)
            raise
        state.accepted, state.refused, state.unjudged = manifest, None, None

    async def _write_other_children(self) -> str:
        """Write all but the Deployment, each on its own; return why one of them is not as desired.

        The check is noted before it is made: a hanging write costs one tick, not every tick.
        """
        state, children = self.state, self.children
        checked = state.checked
        if checked is not None and checked.is_current(children, self.now_s):
            return checked.trouble
        every_s = tick_period.children_every_s(self.services)
        state.checked = ChildrenCheck(
            children=children, at_s=self.now_s, next_s=self.now_s + every_s
        )
        troubles = []
        for manifest in children[:-1]:
            try:
                await state.writer.write(self.cluster, self.service, manifest)
            except NamespaceTerminating:
                state.checked = None
                raise
            except ClusterError as error:
                if isinstance(error, NotOurs) and runs_as(children[-1], manifest):
                    state.checked = None
                    raise
                troubles.append(error)
        state.checked = _checked(children, checked, troubles, self.now_s, every_s)
        return state.checked.trouble

    async def _create_deployment(self, unapplied: str) -> WriteResult:
        manifest = self.children[-1]
        with_replicas = deployments.with_replicas(manifest, self.replicas)
        await self.state.writer.create(self.cluster, with_replicas, manifest)
        return WriteResult(replicas=self.replicas, created=True, unapplied=unapplied)

    async def _apply_deployment(self, live: Manifest, *, undone: bool) -> Manifest:
        if live["metadata"].get("deletionTimestamp"):
            return live
        state, manifest = self.state, self.children[-1]
        state.overwrites = state.overwrites.observe(
            not undone, last_other_writer(live), by_us=False, now_s=self.now_s
        )
        if undone and state.overwrites.is_paused(self.now_s):
            raise Overwritten(
                f"{state.overwrites.by} keeps overwriting Deployment "
                f"{self.service.namespace}/{self.service.name} ({UNDONE} times within "
                f"{WITHIN_S / 60:g} min, or again after a pause), and a repair replaces pods; it "
                f"is left as it is until {rfc3339(state.overwrites.until_s)}: set what it writes "
                "in the InferenceService, or exclude the Deployment from it"
            )
        applied = await state.writer.apply(self.cluster, self.service, manifest, live)
        if applied is not live:
            state.overwrites = state.overwrites.written(value=True, now_s=self.now_s)
        return applied


def _asks_to_wait(error: ClusterError) -> bool:
    return isinstance(error, Unavailable) and error.retry_after_s > 0.0


def _again_after_s(refused_for_s: float, slower: float = 1.0) -> float:
    shortest_s, longest_s = REFUSED_AGAIN_S
    return max(shortest_s * slower, min(longest_s * slower, REFUSED_AGAIN_SHARE * refused_for_s))


def _checked(
    children: tuple[Manifest, ...],
    before: ChildrenCheck | None,
    troubles: Sequence[ClusterError],
    now_s: float,
    every_s: float,
) -> ChildrenCheck:
    """Return what a check found, and when the next one is due."""
    next_s, refused_since_s = now_s + every_s, None
    if any(isinstance(error, Rejected | Forbidden) for error in troubles):
        refused_since_s = now_s
        if before and before.children is children and before.refused_since_s is not None:
            refused_since_s = before.refused_since_s
        slower = every_s / tick_period.SHORTEST_CHILDREN_S
        next_s = now_s + _again_after_s(now_s - refused_since_s, slower)
    if not all(isinstance(error, Rejected | Forbidden) for error in troubles):
        next_s = min(next_s, now_s + TROUBLED_AGAIN_AFTER_S)
    return ChildrenCheck(
        children=children,
        at_s=now_s,
        next_s=next_s,
        trouble="; ".join(map(str, troubles)),
        refused_since_s=refused_since_s,
    )


def _generation(deployment: Manifest | None) -> int | None:
    """It changes with replicas, which a person may have written, and with the template."""
    return deployment["metadata"].get("generation") if deployment else None
