"""Explains the decision of a generating service: binding limit, each promise, unknown values."""

from __future__ import annotations

from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.admission import most_in_flight
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.learning.identification import identify
from headroom.scaling.state.state import State
from headroom.scaling.steps.generating import Generating
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.token_decision import GenerationDecision, TokenMeasurement
from headroom.scaling.values.tokens import Binding


def described(
    policy: Policy, state: State, generating: Generating | None, decision: Decision
) -> Decision:
    """Return the decision with its generation part."""
    if generating is None:
        return decision
    identification = identify(state.generation, policy.token_cost)
    fleet, inputs = generating.fleet, state.generation.inputs
    if fleet is None or inputs is None or policy.token_targets is None:
        part = GenerationDecision(identification=identification, limits=state.generation.limits)
        return replace(decision, generation=_with_promises(part, generating, None, decision))
    replicas, rate_rps = max(1, decision.replicas), decision.signals.arrival_rps.value
    ready = decision.counts.ready
    bounds = fleet.capacity.by_bound(replicas)
    usable = policy.utilization_ceiling * fleet.capacity.full_rps
    bounds = {**bounds, Binding.UTILIZATION: usable}
    binding = min(bounds, key=lambda one: bounds[one])
    part = GenerationDecision(
        identification=identification,
        binding=binding,
        capacity_rps=bounds[binding],
        bounds_rps=tuple(sorted(bounds.items(), key=lambda item: item[1])),
        # a gateway cannot tell requests that only fill: their places would be those of the others
        most_in_flight=None
        if state.classes.has_best_effort
        else most_in_flight(fleet, max(1, ready)),
        cost=inputs.cost,
        shape=inputs.shape,
        limits=inputs.limits,
        engine_share=decision.utilization,
        memory_share=fleet.memory_share(rate_rps, ready) if rate_rps and ready else None,
    )
    part = _with_promises(part, generating, fleet, decision)
    feasible = not part.infeasible and not generating.classes.hopeless
    return replace(decision, generation=part, feasible=feasible)


def _with_promises(
    part: GenerationDecision,
    generating: Generating,
    fleet: GeneratingFleet | None,
    decision: Decision,
) -> GenerationDecision:
    targets = generating.policy.token_targets
    if targets is None:
        return part
    rate_rps, ready = decision.signals.arrival_rps.value, decision.counts.ready
    found: dict[Binding, TokenMeasurement] = {}
    for binding, target in (
        (Binding.TIME_TO_FIRST_TOKEN, targets.first_token),
        (Binding.TIME_PER_OUTPUT_TOKEN, targets.output_token),
        (Binding.LATENCY, targets.latency),
    ):
        if target is None:
            continue
        expected_s = floor_s = None
        if fleet is not None:
            replica = fleet.capacity.replica
            floor_s = replica.floor_s(binding, target.percentile)
            if rate_rps and ready:
                expected_s = replica.percentile_s(
                    binding, target.percentile, rate_rps / ready, ready
                )
        one = generating.measured_of_service.get(binding)
        found[binding] = TokenMeasurement(
            target=target,
            measured_s=one.value_s if one is not None else None,
            late_share=one.late_share if one is not None else None,
            expected_s=expected_s,
            floor_s=floor_s,
        )
    return replace(
        part,
        first_token=found.get(Binding.TIME_TO_FIRST_TOKEN),
        output_token=found.get(Binding.TIME_PER_OUTPUT_TOKEN),
        latency=found.get(Binding.LATENCY),
    )
