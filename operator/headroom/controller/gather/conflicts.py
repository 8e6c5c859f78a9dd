"""Who else scales what a service scales: looked up once per tick, and never fought."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.act.field_ownership import writers_of_replicas
from headroom.controller.decide.obstacles import Obstacle, obstacle, overridden
from headroom.controller.gather.autoscalers import Autoscalers
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.ports import Cluster
from headroom.controller.service_context import Memory
from headroom.controller.services.target_owners import Claims
from headroom.resources.names import SCALER_FIELD_MANAGER


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What others do to the replicas."""

    obstacle: Obstacle | None = None
    """Why none are written."""
    overridden: str = ""
    """That somebody's number stands; empty where ours does."""


class Conflicts:
    """Knows the HPAs and the claims of all services."""

    def __init__(self, cluster: Cluster, claims: Claims) -> None:
        self._cluster = cluster
        self._claims = claims
        self._autoscalers = Autoscalers()

    async def look(
        self, memory: Memory, service: InferenceService, gathered: Gathered, now_s: float
    ) -> Others:
        """Say what others do; remember who wrote the replicas. Raises ClusterError."""
        standing, workload = gathered.observation.current, gathered.deployment
        if workload is not None:
            writers = writers_of_replicas(workload)
            memory.contest = memory.contest.seen(
                standing,
                ", ".join(one for one in writers if one != SCALER_FIELD_MANAGER),
                by_us=SCALER_FIELD_MANAGER in writers,
                now_s=now_s,
            )
        target = service.spec.target_ref
        scaled = ("apps", "Deployment", service.name)
        if target is not None:
            scaled = (target.group, target.kind, target.name)
        found = obstacle(
            service,
            rival=self._claims.rival(service.uid),
            autoscaler=await self._autoscalers.of(self._cluster, service.namespace, scaled, now_s),
            replicas=standing,
            contest=memory.contest,
            now_s=now_s,
        )
        return Others(obstacle=found, overridden=overridden(memory.contest, standing))
