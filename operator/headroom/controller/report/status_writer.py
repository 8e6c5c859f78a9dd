"""Writes the status of a service for the object as it was last seen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headroom.api.kind import API_VERSION, KIND
from headroom.controller.ports import Cluster
from headroom.controller.report.state import ReportState
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import Conflict, NotFound, Unavailable
from headroom.resources.names import FIELD_MANAGER


@dataclass(frozen=True, slots=True)
class StatusWriter:
    """Writes status to the cluster, and updates the cache with the stored object."""

    cluster: Cluster
    cache: ServiceCache

    async def write(self, state: ReportState, new: dict[str, Any], now_s: float) -> None:
        """Write for this UID only; raises NotFound, Conflict and other errors of the cluster.

        An object that was deleted and recreated under the name is another. Where it was changed
        since, the cache learns how, whatever the watch says, before the Conflict is passed on.
        """
        known = self.cache.get(state.uid)
        if known is None:
            raise NotFound(f"{KIND} {state.namespace}/{state.name} is gone")
        metadata = {
            "name": state.name,
            "namespace": state.namespace,
            "uid": state.uid,
            "resourceVersion": known["metadata"]["resourceVersion"],
        }
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": new}
        try:
            stored = await self.cluster.apply_status(body, field_manager=FIELD_MANAGER)
        except Conflict:
            with suppress(Unavailable):  # it is a Conflict all the same
                live = await self.cluster.get(API_VERSION, KIND, state.namespace, state.name)
                self.cache.saw(live)
            raise
        self.cache.saw(stored)
        state.status = self.cache.kept(stored).get("status") or new  # the only copy of it
        state.written_s = now_s
