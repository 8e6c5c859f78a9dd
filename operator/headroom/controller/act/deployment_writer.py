"""Writes the Deployment of a service: validated before, created, or updated where it drifted."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.api.timestamps import rfc3339
from headroom.controller.act.field_ownership import last_other_writer
from headroom.controller.act.rejected_again import sent_again_after_s
from headroom.controller.act.state import ActState, Refusal
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.scheduling.overwrite_backoff import UNDONE, WITHIN_S
from headroom.errors import Forbidden, Rejected
from headroom.resources import deployment as deployments
from headroom.resources.names import FIELD_MANAGER


class Overwritten(Rejected):
    """Another client keeps overwriting the Deployment, and each repair would replace its pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentWriter:
    """Writes one Deployment in one tick."""

    cluster: Cluster
    service: InferenceService
    manifest: Manifest
    """Desired Deployment, without replicas."""
    state: ActState
    now_s: float

    async def validate(self) -> None:
        """Have the API server check a new Deployment before anything is written.

        A schema cannot check podTemplate.
        """
        manifest, state, now_s = self.manifest, self.state, self.now_s
        if manifest == state.accepted:
            return
        refused = state.refused
        if refused and refused.manifest != manifest:
            refused = None
        if refused and now_s - refused.at_s < sent_again_after_s(refused.at_s - refused.since_s):
            raise refused.error
        try:
            await self.cluster.apply(manifest, field_manager=FIELD_MANAGER, dry_run=True)
        except (Rejected, Forbidden) as error:
            since_s = refused.since_s if refused else now_s
            state.refused = Refusal(manifest=manifest, error=error, since_s=since_s, at_s=now_s)
            raise
        state.accepted, state.refused, state.unjudged = manifest, None, None

    async def create(self, replicas: int) -> None:
        """Create the Deployment with this many replicas. Raises ClusterError."""
        with_replicas = deployments.with_replicas(self.manifest, replicas)
        await self.state.writer.create(self.cluster, with_replicas, self.manifest)

    async def apply(self, live: Manifest, *, undone: bool) -> Manifest:
        """Repair drift; return the Deployment as it is then. Raises ClusterError.

        `undone`: another client has undone what was written last.
        """
        if live["metadata"].get("deletionTimestamp"):
            return live
        state, manifest = self.state, self.manifest
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
