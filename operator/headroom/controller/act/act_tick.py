"""All writes of a tick to what the service owns: children that drifted, and replicas.

Each write is guarded.

Replicas are written for the Deployment that the decision was made from (its resourceVersion) or not
at all; children are written only where the object of that name is ours. What the API server refuses
becomes a value, not a crash. What befalls a Service, PodDisruptionBudget or ServiceAccount is said,
and stops neither the others nor the scaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from headroom.api import InferenceService
from headroom.api.conditions import ConditionStatus, ConditionType
from headroom.api.status import Status
from headroom.controller.act.drift import Applied
from headroom.controller.act.field_ownership import handover, is_controlled_by
from headroom.controller.act.victims import mark
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.scheduling import tick_period
from headroom.controller.service_context import Checked, Memory, Refusal
from headroom.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NamespaceTerminating,
    NotFound,
    Rejected,
)
from headroom.resources import deployment as deployments
from headroom.resources.names import FIELD_MANAGER, SCALER_FIELD_MANAGER

TROUBLED_AGAIN_AFTER_S = 6.0
"""One of these that could not be read or written, for a reason that may pass by itself."""
REFUSED_AGAIN_SHARE, REFUSED_AGAIN_S = 1.0 / 15.0, (4.0, 60.0)
"""What was refused is sent again after this share of the time for which it has been refused, from
every 4 s in the first minute to once a minute: a hiccup ends soon, a quota changes slowly. The
other children of many services take their time, as their looks do."""


class Step(StrEnum):
    """Which write was refused."""

    VALIDATE = "validate"
    CHILDREN = "children"
    SCALE = "scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What was written."""

    replicas: int
    """What the Deployment is asked for now."""
    created: bool = False
    """The Deployment was not there, and is."""
    scaled: bool = False
    refused: Step | None = None
    message: str = ""
    """Why it was refused, in the API server's words."""
    unapplied: str = ""
    """Why a Service, PodDisruptionBudget or ServiceAccount is not as it should be."""
    unmarked: str = ""
    """Why pods that a scale-down should take could not be marked."""
    namespace_ends: bool = False
    """It was refused because the namespace is being deleted."""


class NotOurs(Rejected):
    """An object of a child's name exists, and is not controlled by the service."""


def replicas_to_write(service: InferenceService, gathered: Gathered, replicas: int) -> int | None:
    """Say what /scale is to be given, or None: nothing changes, or nothing may."""
    deployment = gathered.deployment
    if deployment is None or deployment["metadata"].get("deletionTimestamp"):
        return None
    if service.spec.scaling.mode == "Recommend":
        return None
    if service.spec.target_ref is None and not is_controlled_by(deployment, service.uid):
        return None
    return replicas if replicas != gathered.observation.current else None


async def act(
    cluster: Cluster,
    service: InferenceService,
    memory: Memory,
    gathered: Gathered,
    replicas: int,
    now_s: float,
    *,
    services: int,
) -> Acted:
    """Write what has to be written, in order: validate, children, replicas; of a target the last.

    The Deployment is read at every tick, the other children the less often the more `services`
    there are.

    Raises ClusterError for whatever is no refusal: conflicts, absence, an API that does not answer.
    """
    standing = gathered.observation.current
    if service.spec.target_ref is not None:
        return await _scale_target(cluster, service, memory, gathered, replicas, now_s)
    step = Step.VALIDATE
    deployment = gathered.deployment
    try:
        if deployment is not None:  # a dry run against somebody's own would blame our spec
            step = Step.CHILDREN
            _check_owner(deployment, service)
            step = Step.VALIDATE
            if _may_wait(service, memory, gathered, replicas, now_s, services):
                return Acted(replicas=standing)
        await _validate(cluster, memory, now_s)
        step = Step.CHILDREN
        every_s = tick_period.children_every_s(services)
        unapplied = await _apply_other_children(cluster, service, memory, now_s, every_s)
        if deployment is None:
            live = await _create(cluster, deployments.with_replicas(memory.children[-1], replicas))
            memory.applied["Deployment"] = Applied.of(memory.children[-1], live)
            return Acted(replicas=replicas, created=True, unapplied=unapplied)
        deployment = await _apply_deployment(cluster, service, memory, deployment)
        if _generation(deployment) != _generation(gathered.deployment):
            raise Conflict("the Deployment's spec is not the one that was decided on")
        step = Step.SCALE
        changed = replicas_to_write(service, gathered, replicas)
        asked = standing if changed is None else changed
        unmarked = await mark(cluster, service, memory, gathered, asked, now_s)
        if changed is None:
            return Acted(replicas=standing, unapplied=unapplied)
        await cluster.apply_scale(deployment, changed, field_manager=SCALER_FIELD_MANAGER)
        return Acted(replicas=changed, scaled=True, unapplied=unapplied, unmarked=unmarked)
    except Rejected as error:
        return Acted(replicas=standing, refused=step, message=str(error))
    except Forbidden as error:  # says nothing about the spec
        refused = Step.SCALE if step is Step.SCALE else Step.CHILDREN
        ends = isinstance(error, NamespaceTerminating)
        return Acted(replicas=standing, refused=refused, message=str(error), namespace_ends=ends)


def _may_wait(
    service: InferenceService,
    memory: Memory,
    gathered: Gathered,
    replicas: int,
    now_s: float,
    services: int,
) -> bool:
    """Whether children that this process has not looked at yet can wait: there are many services.

    Only where an earlier process has found all in order for this spec, and nothing is to be scaled.
    """
    if memory.accepted is not None or replicas_to_write(service, gathered, replicas) is not None:
        return False
    before = Status.read(memory.status)
    kind, status = ConditionType.READY, ConditionStatus.TRUE
    ready = any(one.type == kind and one.status is status for one in before.conditions)
    if before.observed_generation != service.generation or not ready:
        return False
    if memory.children_due_s is None:
        memory.children_due_s = now_s + tick_period.head_start_s(memory.uid, services)
    return now_s < memory.children_due_s


async def _scale_target(
    cluster: Cluster,
    service: InferenceService,
    memory: Memory,
    gathered: Gathered,
    replicas: int,
    now_s: float,
) -> Acted:
    """Write the replicas of somebody else's workload, and nothing else of it."""
    standing, target = gathered.observation.current, gathered.deployment
    wanted = replicas_to_write(service, gathered, replicas)
    asked = standing if wanted is None else wanted
    unmarked = await mark(cluster, service, memory, gathered, asked, now_s)
    if target is None or wanted is None:
        return Acted(replicas=standing)
    try:
        await cluster.apply_scale(target, wanted, field_manager=SCALER_FIELD_MANAGER)
    except (Rejected, Forbidden) as error:
        return Acted(replicas=standing, refused=Step.SCALE, message=str(error))
    return Acted(replicas=wanted, scaled=True, unmarked=unmarked)


async def _validate(cluster: Cluster, memory: Memory, now_s: float) -> None:
    """Have the API server check a new Deployment before anything is written.

    A schema cannot see podTemplate.
    """
    manifest = memory.children[-1]
    if manifest == memory.accepted:
        return
    refused = memory.refused
    if refused and refused.manifest != manifest:
        refused = None
    if refused and now_s - refused.at_s < _again_after_s(refused.at_s - refused.since_s):
        raise refused.error
    try:
        await cluster.apply(manifest, field_manager=FIELD_MANAGER, dry_run=True)
    except (Rejected, Forbidden) as error:
        since_s = refused.since_s if refused else now_s
        memory.refused = Refusal(manifest=manifest, error=error, since_s=since_s, at_s=now_s)
        raise
    memory.accepted, memory.refused = manifest, None


def _again_after_s(refused_for_s: float, slower: float = 1.0) -> float:
    shortest_s, longest_s = REFUSED_AGAIN_S
    return max(shortest_s * slower, min(longest_s * slower, REFUSED_AGAIN_SHARE * refused_for_s))


async def _apply_other_children(
    cluster: Cluster, service: InferenceService, memory: Memory, now_s: float, every_s: float
) -> str:
    """Bring them up to date, each for itself; return why one of them is not.

    The check is noted before it is made: what hangs costs one tick, and not every tick.
    """
    checked = memory.children_checked
    if checked is not None and checked.holds(memory.children, now_s):
        return checked.trouble
    again_s = now_s + every_s
    memory.children_checked = Checked(children=memory.children, at_s=now_s, again_s=again_s)
    troubles = []
    for manifest in memory.children[:-1]:
        try:
            await _apply_other_child(cluster, service, memory, manifest)
        except NamespaceTerminating:
            memory.children_checked = None
            raise
        except ClusterError as error:
            troubles.append(error)
    memory.children_checked = _checked(memory.children, checked, troubles, now_s, every_s)
    return memory.children_checked.trouble


def _checked(
    children: tuple[Manifest, ...],
    before: Checked | None,
    troubles: Sequence[ClusterError],
    now_s: float,
    every_s: float,
) -> Checked:
    """Say what a look found, and when the next one is due."""
    again_s, refused_since_s = now_s + every_s, None
    if any(isinstance(error, Rejected | Forbidden) for error in troubles):
        refused_since_s = now_s
        if before and before.children is children and before.refused_since_s is not None:
            refused_since_s = before.refused_since_s
        slower = every_s / tick_period.SHORTEST_CHILDREN_S
        again_s = now_s + _again_after_s(now_s - refused_since_s, slower)
    if not all(isinstance(error, Rejected | Forbidden) for error in troubles):
        again_s = min(again_s, now_s + TROUBLED_AGAIN_AFTER_S)
    return Checked(
        children=children,
        at_s=now_s,
        again_s=again_s,
        trouble="; ".join(map(str, troubles)),
        refused_since_s=refused_since_s,
    )


async def _apply_other_child(
    cluster: Cluster, service: InferenceService, memory: Memory, manifest: Manifest
) -> None:
    live = await _get(cluster, manifest)
    if live is None:
        live = await _create(cluster, manifest)
        memory.applied[manifest["kind"]] = Applied.of(manifest, live)
    else:
        await _apply_if_drifted(cluster, service, memory, manifest, live)


async def _apply_deployment(
    cluster: Cluster, service: InferenceService, memory: Memory, live: Manifest
) -> Manifest:
    if live["metadata"].get("deletionTimestamp"):
        return live
    return await _apply_if_drifted(cluster, service, memory, memory.children[-1], live)


async def _apply_if_drifted(
    cluster: Cluster,
    service: InferenceService,
    memory: Memory,
    manifest: Manifest,
    live: Manifest,
) -> Manifest:
    """Apply to the object as it was read: what an earlier leader still sends is refused."""
    _check_owner(live, service)
    operations = handover(live)
    if operations:
        live = await cluster.json_patch(live, operations, field_manager=FIELD_MANAGER)
    kind, metadata = manifest["kind"], manifest["metadata"]
    applied = memory.applied.get(kind)
    if applied is not None and applied.stands(manifest, live):
        memory.applied[kind] = applied.seen(live)
        return live
    read = {"resourceVersion": live["metadata"]["resourceVersion"]}
    answer = await cluster.apply(
        manifest | {"metadata": metadata | read}, field_manager=FIELD_MANAGER
    )
    memory.applied[kind] = Applied.of(manifest, answer)
    return answer


async def _create(cluster: Cluster, manifest: Manifest) -> Manifest:
    """POST, which fails where somebody was faster, then hand over all fields but replicas.

    A crash in between is made good at a later tick.
    """
    live = await cluster.create(manifest, field_manager=SCALER_FIELD_MANAGER)
    with suppress(Conflict):  # a controller was faster; a later tick hands over
        live = await cluster.json_patch(live, handover(live), field_manager=FIELD_MANAGER)
    return live


async def _get(cluster: Cluster, manifest: Manifest) -> Manifest | None:
    metadata = manifest["metadata"]
    try:
        return await cluster.get(
            manifest["apiVersion"], manifest["kind"], metadata["namespace"], metadata["name"]
        )
    except NotFound:
        return None


def _check_owner(live: Manifest, service: InferenceService) -> None:
    if not is_controlled_by(live, service.uid):
        kind = live.get("kind", "object")
        raise NotOurs(
            f"{kind} {service.namespace}/{service.name} exists and is not controlled by this "
            "InferenceService: delete it, or give the InferenceService another name"
        )


def _generation(deployment: Manifest | None) -> int | None:
    """What changes with replicas, which a human may have written, and with the template."""
    return deployment["metadata"].get("generation") if deployment else None
