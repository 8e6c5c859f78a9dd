"""Writes the replicas of a workload that was read, where the operator may write them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from headroom.api import InferenceService
from headroom.controller.act.field_ownership import is_controlled_by
from headroom.controller.act.rejected_again import sent_again_after_s
from headroom.controller.act.same_spec import write_again
from headroom.controller.act.state import ActState, ScaleRefusal
from headroom.controller.act.write_result import Step, WriteResult
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.ports import Cluster, Manifest
from headroom.errors import Forbidden, Rejected, Unavailable
from headroom.resources.names import SCALER_FIELD_MANAGER


def may_scale(service: InferenceService, gathered: Gathered) -> bool:
    """Return whether there is a workload whose replicas the operator may write."""
    deployment = gathered.deployment
    if deployment is None or deployment["metadata"].get("deletionTimestamp"):
        return False
    if service.spec.scaling.mode == "Recommend":
        return False
    return service.spec.target_ref is not None or is_controlled_by(deployment, service.uid)


def replicas_to_write(service: InferenceService, gathered: Gathered, replicas: int) -> int | None:
    """Return the replicas to write to /scale, or None: nothing changes, or nothing may."""
    changed = replicas != gathered.observation.current
    return replicas if changed and may_scale(service, gathered) else None


async def write_replicas(
    cluster: Cluster,
    workload: Manifest,
    changed: int,
    state: ActState,
    result: WriteResult,
    now_s: float,
    *,
    unmarked: str,
) -> WriteResult:
    """Write replicas for the spec that was read; return them with the earlier result.

    A number that was refused is sent again after a while, another one at once. Raises Conflict,
    NotFound and Unavailable.
    """
    refused = state.scale_refused
    if refused is not None and refused.replicas == changed:
        if now_s - refused.at_s < sent_again_after_s(refused.at_s - refused.since_s):
            return replace(result, refused=Step.SCALE, message=refused.message)
    else:
        refused = None
    since_s = now_s if refused is None else refused.since_s

    def not_as_written(message: str) -> ScaleRefusal:
        return ScaleRefusal(replicas=changed, message=message, since_s=since_s, at_s=now_s)

    try:
        answer = await write_again(
            cluster,
            workload,
            workload,
            partial(cluster.apply_scale, replicas=changed, field_manager=SCALER_FIELD_MANAGER),
        )
    except (Rejected, Forbidden, Unavailable) as error:
        state.scale_failed_s = now_s
        if isinstance(error, Unavailable):
            raise
        state.scale_refused = not_as_written(str(error))
        return replace(result, refused=Step.SCALE, message=str(error))
    stored = int((answer.get("spec") or {}).get("replicas", 0))
    scaled = replace(result, replicas=stored, scaled=stored != result.replicas, unmarked=unmarked)
    if stored != changed:
        state.scale_failed_s = now_s
        message = (
            f"{changed} replicas were written and {stored} are stored: an admission policy or "
            "webhook changes them"
        )
        state.scale_refused = not_as_written(message)
        return replace(scaled, refused=Step.SCALE, message=message)
    state.scale_failed_s = state.scale_refused = None
    return scaled
