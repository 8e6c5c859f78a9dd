"""One object that routing owns: created where it is missing, applied where it is another."""

from __future__ import annotations

from contextlib import suppress

from headroom.api import InferenceService
from headroom.controller.act.drift import Applied
from headroom.controller.act.field_ownership import handover, is_controlled_by
from headroom.controller.ports import Cluster, Manifest
from headroom.errors import Conflict, NotFound, Rejected
from headroom.resources.names import FIELD_MANAGER, SCALER_FIELD_MANAGER

LOOKED_AT_EVERY_S = 60.0


class Writer:
    """Writes the objects of one service, and remembers how they were shown."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._applied: dict[str, tuple[Applied, float]] = {}

    async def bring(self, service: InferenceService, manifest: Manifest, now_s: float) -> None:
        """Have the object be as in the manifest; what stands is looked at now and then.

        Raises ClusterError, and Rejected where somebody else's object has the name.
        """
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        applied, looked_s = self._applied.get(name, (None, 0.0))
        stands = applied is not None and applied.manifest == manifest
        if stands and 0.0 <= now_s - looked_s < LOOKED_AT_EVERY_S:
            return
        live = await self._live(manifest)
        if live is None:
            live = await self._create(manifest)
            self._applied[name] = Applied.of(manifest, live), now_s
            return
        if not is_controlled_by(live, service.uid):
            raise Rejected(
                f"{name} in {service.namespace} exists and is not controlled by this "
                "InferenceService: delete it, or give the InferenceService another name"
            )
        if applied is not None and applied.stands(manifest, live):
            self._applied[name] = applied.seen(live), now_s
            return
        operations = handover(live)
        if operations:
            live = await self._cluster.json_patch(live, operations, field_manager=FIELD_MANAGER)
        read = {"resourceVersion": live["metadata"]["resourceVersion"]}
        at_version = manifest | {"metadata": manifest["metadata"] | read}
        answer = await self._cluster.apply(at_version, field_manager=FIELD_MANAGER)
        self._applied[name] = Applied.of(manifest, answer), now_s

    async def _live(self, manifest: Manifest) -> Manifest | None:
        metadata = manifest["metadata"]
        try:
            return await self._cluster.get(
                manifest["apiVersion"], manifest["kind"], metadata["namespace"], metadata["name"]
            )
        except NotFound:
            return None

    async def _create(self, manifest: Manifest) -> Manifest:
        live = await self._cluster.create(manifest, field_manager=SCALER_FIELD_MANAGER)
        with suppress(Conflict):  # a controller was faster; a later look hands over
            live = await self._cluster.json_patch(live, handover(live), field_manager=FIELD_MANAGER)
        return live
