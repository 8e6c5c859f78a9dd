"""Divides the replicas that Headroom holds at an instant into what each of its parts adds. Pure.

The layers follow one another as in the decision: each one is what its part raises the number to,
over the ones before it. The first is what carries the present arrivals; what the clairvoyant holds
is compared with that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.limits.scale_down import REBALANCED_HOLD_S, hold_s
from headroom.scaling.rules.rate_rules import for_latency, for_removal, for_utilization
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.state.state import State
from headroom.scaling.steps.latency_model import corrected_target_s, tail_of
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.tuning import SLACK_S, Tuning

CARRIES = "carry the arrivals"
LAYERS = (
    *(CARRIES, "bursts", "forecast", "risk added", "learned margin", "reserve"),
    *("queues, hidden demand", "removal margin", "forecast kept", "risk kept", "usual hold"),
    *("no start measured", "kept connections", "holds after flaps", "other limits"),
    "starting, draining",
)
Added = tuple[float, ...]
"""Replicas that each of `LAYERS` adds."""


def added(
    policy: Policy, state: State, decision: Decision, ready: Sequence[str], held: int
) -> Added:
    """Return what each layer adds at this decision; `held` are all pods that cost a GPU."""
    levels = [*_needed(policy, state, decision, ready), *_kept(policy, state, decision)]
    raised = list(accumulate(levels, max))
    capped = [0, *(min(level, decision.replicas) for level in raised), decision.replicas, held]
    return tuple(float(after - before) for before, after in pairwise(capped))


def above(layers: Added, bound: float) -> Added:
    """Return the part of each layer that is above `bound` replicas; the last layers are on top.

    Worked: layers of 3, 2 and 1 replicas above a bound of 4: 0, 1 and 1.
    """
    held = sum(layers)
    levels = (0.0, *(min(level, held) for level in accumulate(layers)))
    return tuple(max(0.0, after - max(before, bound)) for before, after in pairwise(levels))


def _needed(
    policy: Policy, state: State, decision: Decision, ready: Sequence[str]
) -> tuple[int, ...]:
    """Return the levels that the rules need, without any hold."""
    rules = {rule.rule: rule.replicas for rule in decision.recommendations}
    every = max(rules.values(), default=0)
    arrivals = max(rules.get(Reason.LATENCY_MODEL, 0), rules.get(Reason.UTILIZATION_CEILING, 0))
    burst, margin = rules.get(Reason.BURST, 0), rules.get(Reason.ERROR_BUDGET, 0)
    reserve = rules.get(Reason.RESERVE, 0)
    entries = state.needed_high.entries
    needed = entries[-1][1] if entries else 0
    tail = tail_of(
        policy, state.cost, policy.routing, state.learner.speeds, ready, state.connections.number
    )
    rate_rps = decision.signals.arrival_rps.value
    if tail is None or rate_rps is None:
        seen = (arrivals, burst, arrivals, arrivals, margin, reserve, every)
        return (*seen, needed, needed, needed)
    target_s = corrected_target_s(policy, tail, state.correction.factor)
    usual = _expected(replace(policy, tuning=Tuning()), state, decision.time_s, rate_rps)
    plain = Rates(for_ceiling_rps=rate_rps, for_latency_rps=rate_rps)
    return (
        _carrying(policy, tail, plain, target_s),
        burst,
        min(arrivals, _carrying(policy, tail, usual.later, target_s)),
        arrivals,
        margin,
        reserve,
        every,
        min(needed, for_removal(policy, tail, plain, target_s)),
        min(needed, for_removal(policy, tail, usual.most, target_s)),
        needed,
    )


def _expected(policy: Policy, state: State, now_s: float, rate_rps: float) -> Expected:
    """Return what is expected at the usual level of risk."""
    start_s = state.cold_starts.p90_s or max(SLACK_S, state.cold_starts.at_least_s)
    return state.forecast.expected(policy, now_s, rate_rps, None, start_s)


def _carrying(policy: Policy, tail: ServingModel, rates: Rates, target_s: float) -> int:
    by_ceiling = for_utilization(policy, tail.cost, rates.for_ceiling_rps)
    by_latency = for_latency(policy, tail, rates.for_latency_rps, target_s)
    return max(by_ceiling.replicas, by_latency.replicas if by_latency is not None else 0)


def _kept(policy: Policy, state: State, decision: Decision) -> tuple[int, ...]:
    """Return the levels that the holds keep."""
    now_s, usual_s = decision.time_s, hold_s(policy, state)
    high, measured = state.needed_high, state.cold_starts.p90_s is not None
    configured_s = usual_s if measured else policy.scale_down_stabilization_s
    configured = high.since(now_s - configured_s) or 0
    pinned = policy.routing is Routing.STICKY and state.connections.pinned
    usual = high.since(now_s - usual_s) or 0
    connections = high.since(now_s - max(usual_s, REBALANCED_HOLD_S)) if pinned else usual
    flapped = [
        min(level, state.arrivals_high.since(now_s - longer_s) or 0)
        for longer_s, level in state.flaps.holds(now_s, usual_s)
    ]
    return configured, usual, connections or 0, max(flapped, default=0)
