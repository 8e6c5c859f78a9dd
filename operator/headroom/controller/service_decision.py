"""Decide step of one service, within the operator's caps and next to other services.

The decision itself is `decide/decide_tick.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headroom.api import InferenceService
from headroom.controller.act.eviction import objection, rebalancing_objection
from headroom.controller.act.scale_writer import may_scale
from headroom.controller.decide.decide_tick import DecisionInputs, DecisionResult
from headroom.controller.decide.requested_replicas import requested_replicas
from headroom.controller.decide.rollout import RolloutPlan, plan
from headroom.controller.decide.rollout_facts import facts_of
from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.service_context import ServiceContext
from headroom.controller.sharing.caps import Ceiling
from headroom.controller.sharing.ceilings import Ceilings
from headroom.controller.sharing.competition import Competition
from headroom.controller.sharing.partners import Partners
from headroom.resources.object_conditions import is_true


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDecision:
    """The decide step, with the state that all services share for it."""

    ceilings: Ceilings
    competition: Competition
    partners: Partners
    route_status: Callable[[InferenceService], RouteStatus]

    def forget(self, uid: str) -> None:
        """Discard the shared state of a deleted service."""
        self.competition.forget(uid)
        self.ceilings.forget(uid)
        self.partners.forget(uid)

    def ceiling(
        self, context: ServiceContext, service: InferenceService, gathered: Gathered
    ) -> Ceiling:
        """Return the most replicas that the service may request now."""
        current = 0 if gathered.deployment is None else gathered.observation.current
        return self.ceilings.of(
            service,
            context.workload(gathered.deployment),
            current,
            pair=self.partners.needs(service, current),
        )

    def inputs(
        self,
        context: ServiceContext,
        service: InferenceService,
        gathered: Gathered,
        ceiling: Ceiling,
        *,
        tick_s: float,
        blocked: bool,
    ) -> DecisionInputs:
        """Collect the inputs of the decision, with the accelerators that other services leave."""
        now_s, samples = gathered.observation.now_s, context.gather.samples
        assert samples is not None
        lead_s = context.decide.service.state.cold_starts.p90_s or 0.0
        scaling = service.spec.scaling
        floor = context.decide.floors.at(scaling.schedules, scaling.min_replicas, now_s, lead_s)
        refused = objection(service, gathered, context.act, now_s, blocked=blocked)
        pinned = rebalancing_objection(service, gathered, context.act, now_s, blocked=blocked)
        policy = ceiling.applied(service.to_policy(tick_s=tick_s, floor=floor))
        allocation = self.competition.allocation(context.uid)
        partner = self.partners.of(service, now_s, tick_s)
        return DecisionInputs(
            service=service,
            policy=replace(policy, replacement_objection=refused, rebalancing_objection=pinned),
            min_replicas=floor.replicas,
            observation=replace(gathered.observation, allocation=allocation, partner=partner),
            samples=samples,
            route=self.route_status(service),
        )

    def requested(
        self,
        context: ServiceContext,
        gathered: Gathered,
        inputs: DecisionInputs,
        decided: DecisionResult,
        ceiling: Ceiling,
        *,
        blocked: bool,
        surges: bool = False,
    ) -> int:
        """Return the replicas to request, and count their accelerators."""
        desired = requested_replicas(
            inputs.service,
            decided.decision,
            decided.after.state,
            gathered.observation.current,
            min_replicas=inputs.min_replicas,
            blocked=blocked and gathered.deployment is not None,
        )
        desired = min(desired, ceiling.replicas)
        workload = context.workload(gathered.deployment)
        refused = is_true(gathered.deployment or {}, "ReplicaFailure")
        self.ceilings.note(
            inputs.service,
            workload,
            decided.observation,
            desired,
            refused=refused,
            surges=surges,
        )
        self.partners.note(inputs.service, decided.decision, desired, ceiling)
        return desired

    def rollout(
        self,
        context: ServiceContext,
        service: InferenceService,
        gathered: Gathered,
        *,
        decided: int,
    ) -> RolloutPlan | None:
        """Return how pods are replaced; None where that is not the operator's choice."""
        live = gathered.deployment
        if live is None or service.spec.target_ref is not None:
            return None
        manifest, most = context.children[-1], max(gathered.observation.current, decided)
        facts = facts_of(
            service,
            gathered,
            manifest,
            starts=context.act.writer.changes_template(manifest, live),
            fits=self.ceilings.fits_one_more(service, manifest, most),
            start_s=context.decide.service.state.cold_starts.assumed_s,
        )
        return None if facts is None else plan(facts)

    def yielding(
        self,
        context: ServiceContext,
        gathered: Gathered,
        inputs: DecisionInputs,
        decided: DecisionResult,
        *,
        blocked: bool,
    ) -> str:
        """Let the others see this service; return which of them yield to it."""
        service = inputs.service
        ours = gathered.deployment is None or may_scale(service, gathered)
        now_s = gathered.observation.now_s
        return self.competition.note(
            service,
            context.workload(gathered.deployment),
            decided.observation,
            decided.decision,
            writable=ours and not blocked and context.act.can_scale(now_s),
        )
