"""Act step of one service: evictions, children and replicas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from headroom.controller.act.act_tick import Writes
from headroom.controller.act.eviction import evict
from headroom.controller.act.write_result import WriteResult
from headroom.controller.decide.requested_replicas import would_scale
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.gather.workloads.shared_reads import SharedReads
from headroom.controller.ports import Clock, Cluster
from headroom.controller.report.conditions.condition_result import TickResult
from headroom.controller.service_context import ServiceContext
from headroom.controller.services.service_cache import ServiceCache
from headroom.resources.settings import Settings
from headroom.scaling.values.observation import PodState


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceWrites:
    """The act step, with the state that all services share for it."""

    cluster: Cluster
    clock: Clock
    cache: ServiceCache
    shared: SharedReads
    settings: Settings

    async def run(self, context: ServiceContext, tick: TickResult, replicas: int) -> WriteResult:
        """Write evictions, children and replicas, and remember them. Raises ClusterError."""
        now_s = self.clock.now_s()
        evicted, unevicted = await evict(
            self.cluster, tick.service, tick.gathered, tick.decision, context.act, now_s
        )
        written = await Writes(
            cluster=self.cluster,
            service=tick.service,
            children=context.children,
            state=context.act,
            gathered=tick.gathered,
            replicas=replicas,
            now_s=self.clock.now_s(),
            services=len(self.cache),
            marks_pods=self.settings.marks_pods,
            was_ready=partial(context.report.was_ready, tick.service.generation),
            was_valid=partial(context.report.was_valid, tick.service.generation),
        ).run()
        written = replace(written, evicted=evicted, unevicted=unevicted)
        moves = would_scale(tick.service, tick.decision) or not _is_settled(tick.gathered, written)
        self.shared.moves(context.uid, moves=moves)
        if written.scaled or written.created:
            context.decide.overwrites = context.decide.overwrites.written(
                written.replicas, self.clock.now_s()
            )
        return written


def _is_settled(gathered: Gathered, written: WriteResult) -> bool:
    """Return whether all replicas exist and are ready, so that there is nothing to wait for."""
    observation = gathered.observation
    ready = all(one.state is PodState.READY for one in observation.pods)
    there = len(observation.pods) + observation.unlisted_ready
    return ready and there == written.replicas and not observation.rolling
