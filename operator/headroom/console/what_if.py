"""Computes the decision for another SLO or other bounds, with the production rules. Pure.

It uses the last evaluation: its windows, its pods, its time. So the answer differs from the
actual decision only by the changed values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.console.what_if_changes import Changes
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Decision, Policy, decide
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.post_rules import apply_post_rules

TARGETS = (0.5, 0.75, 1.5, 2.0)
"""Factors of the present target to show as alternatives."""
CEILINGS = (0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The decision with the changed values."""

    policy: Policy
    now: int
    """Desired replicas at this tick, after every hold and limit."""
    settled: int | None
    """Replicas that the rules require within the bounds, after holds end; None: unknown."""
    latency_s: float | None
    """Expected latency at that number; infinity if it cannot carry the arrivals."""
    utilization: float | None
    accelerators: int | None
    feasible: bool
    reason: str


def answer(evaluation: Evaluation, changes: Changes) -> Answer:
    """Decide with the changed values; raise ValueError if they contradict each other."""
    policy = changes.applied(evaluation.policy)
    decided = decide(policy, evaluation.state, evaluation.observation)
    inputs = evaluation.post_inputs
    if changes.min_replicas:
        inputs = replace(inputs, zero=None)
    decision, _ = apply_post_rules(policy, evaluation.state, decided, inputs)
    settled = _settled(policy, decision)
    latency_s, utilization = _expected(policy, decision, settled)
    count = evaluation.accelerators_per_replica
    return Answer(
        policy=policy,
        now=decision.replicas,
        settled=settled,
        latency_s=latency_s,
        utilization=utilization,
        accelerators=None if settled is None or count is None else settled * count,
        feasible=decision.feasible,
        reason=decision.reason,
    )


def neighbours(evaluation: Evaluation) -> list[Answer]:
    """Return common alternatives: unchanged, other targets, other ceilings."""
    policy = evaluation.policy
    alternatives = [Changes()]
    tokens = policy.token_targets
    if tokens is None:
        alternatives += [Changes(target_s=_rounded(f * policy.latency_target_s)) for f in TARGETS]
    if tokens is not None and tokens.first_token is not None:
        first_s = tokens.first_token.seconds
        alternatives += [Changes(first_token_s=_rounded(f * first_s)) for f in TARGETS]
    if tokens is not None and tokens.output_token is not None:
        output_s = tokens.output_token.seconds
        alternatives += [Changes(output_token_s=_rounded(f * output_s)) for f in TARGETS]
    alternatives += [Changes(ceiling=one) for one in CEILINGS if one != policy.utilization_ceiling]
    return [answer(evaluation, changes) for changes in alternatives]


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.3g}")


def _settled(policy: Policy, decision: Decision) -> int | None:
    if not decision.recommendations:
        return None
    wanted = max(one.replicas for one in decision.recommendations)
    return min(max(wanted, policy.min_replicas), policy.max_replicas)


def _expected(
    policy: Policy, decision: Decision, replicas: int | None
) -> tuple[float | None, float | None]:
    rate_rps = decision.signals.arrival_rps.value
    if not replicas or decision.cost is None or rate_rps is None:
        return None, None
    tail = TailLatency(
        cost=decision.cost, percentile=policy.latency_percentile, routing=policy.routing
    )
    utilization = rate_rps / (replicas * decision.cost.full_batch_rps)
    return tail.latency_s(rate_rps, replicas), utilization
