"""Other scalers of a service's workload: HPAs, other InferenceServices, field managers."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.gather.other_writers.autoscalers import Autoscalers
from headroom.controller.gather.other_writers.replica_writers import (
    autoscaler_wrote,
    writers_of_replicas,
)
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.services.target_owners import TargetOwners
from headroom.resources.names import SCALER_FIELD_MANAGER


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherScalers:
    """Other autoscalers as read in one tick; names are empty where there is none."""

    owner: str = ""
    """The InferenceService that has priority over this one."""
    autoscaler: str = ""
    """The HPA, or what created it."""
    writer: str = ""
    """Field managers other than the operator's that own the replicas."""
    ours: bool = False
    """Whether the operator's field manager owns the replicas."""


class OtherScalersReader:
    """Knows the HPAs and the owners of targets of all services."""

    def __init__(self, cluster: Cluster, owners: TargetOwners) -> None:
        self._cluster = cluster
        self._owners = owners
        self._autoscalers = Autoscalers()

    async def read(
        self,
        service: InferenceService,
        workload: Manifest | None,
        now_s: float,
        *,
        created_s: float,
    ) -> OtherScalers:
        """Read for a service that was created at `created_s`. Raises ClusterError."""
        writers = [] if workload is None else writers_of_replicas(workload)
        target = service.spec.target_ref
        scaled = ("apps", "Deployment", service.name)
        if target is not None:
            scaled = (target.group, target.kind, target.name)
        return OtherScalers(
            owner=self._owners.other_owner(service.uid),
            autoscaler=await self._autoscalers.of(
                self._cluster,
                service.namespace,
                scaled,
                now_s,
                created_s=created_s,
                wrote=None if workload is None else autoscaler_wrote(workload),
                blocks=service.spec.scaling.mode == "Auto",
            ),
            writer=", ".join(one for one in writers if one != SCALER_FIELD_MANAGER),
            ours=SCALER_FIELD_MANAGER in writers,
        )
