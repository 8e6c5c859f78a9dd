"""What would be decided under another promise or other bounds: the same `decide()`, asked again.

Pure. The evaluation is the last one: its windows, its pods, its moment. So the answer differs from
what stands by the wish alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headroom.api.durations import Duration
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Decision, Policy, decide
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.post_rules import apply_post_rules

TARGETS = (0.5, 0.75, 1.5, 2.0)
"""Factors of the present target that are asked about unbidden."""
CEILINGS = (0.6, 0.7, 0.8, 0.9)
PERCENTILES = (90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be different; None stays as it is."""

    target_s: float | None = None
    percentile: int | None = None
    ceiling: float | None = None
    least: int | None = None
    most: int | None = None

    def applied(self, policy: Policy) -> Policy:
        """Give the policy as it would be; raise ValueError where its bounds cross."""
        wished = replace(
            policy,
            latency_target_s=self.target_s or policy.latency_target_s,
            latency_percentile=(
                policy.latency_percentile if self.percentile is None else self.percentile / 100
            ),
            utilization_ceiling=self.ceiling or policy.utilization_ceiling,
            min_replicas=self.least or policy.min_replicas,
            max_replicas=self.most or policy.max_replicas,
        )
        if wished.min_replicas > wished.max_replicas:
            raise ValueError(
                f"minReplicas must be at most maxReplicas, received {wished.min_replicas} "
                f"and {wished.max_replicas}"
            )
        return wished


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What would be decided."""

    policy: Policy
    now: int
    """Replicas that would be asked for at this tick, with every hold and limit."""
    settled: int | None
    """Replicas that the rules want within the bounds, once holds have passed; None: not known."""
    latency_s: float | None
    """What the model expects at that number; infinity where it could not carry the arrivals."""
    utilization: float | None
    accelerators: int | None
    feasible: bool
    reason: str


def answer(evaluation: Evaluation, wish: Wish) -> Answer:
    """Decide again under the wish; raise ValueError where it contradicts itself."""
    policy = wish.applied(evaluation.policy)
    decided = decide(policy, evaluation.state, evaluation.observation)
    inputs = evaluation.post_inputs
    if wish.least:
        inputs = replace(inputs, zero=None)
    decision, _ = apply_post_rules(policy, evaluation.state, decided, inputs)
    settled = _settled(policy, decision)
    latency_s, utilization = _expected(policy, decision, settled)
    count = evaluation.service.spec.accelerator.count
    return Answer(
        policy=policy,
        now=decision.replicas,
        settled=settled,
        latency_s=latency_s,
        utilization=utilization,
        accelerators=None if settled is None else settled * count,
        feasible=decision.feasible,
        reason=decision.reason,
    )


def neighbours(evaluation: Evaluation) -> list[Answer]:
    """Answer unbidden: as it is, tighter and looser targets, lower and higher ceilings."""
    policy = evaluation.policy
    wishes = [Wish()]
    wishes += [Wish(target_s=float(f"{f * policy.latency_target_s:.3g}")) for f in TARGETS]
    wishes += [Wish(ceiling=one) for one in CEILINGS if one != policy.utilization_ceiling]
    return [answer(evaluation, wish) for wish in wishes]


def parsed(fields: Mapping[str, str]) -> Wish:
    """Read a form; a field that is empty stays as it is.

    Raises ValueError naming field, rule and what was received.
    """
    return Wish(
        target_s=_target_s(fields.get("target", "")),
        percentile=_percentile(fields.get("percentile", "")),
        ceiling=_ceiling(fields.get("ceiling", "")),
        least=_replicas("min", fields.get("min", "")),
        most=_replicas("max", fields.get("max", "")),
    )


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


def _target_s(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        seconds = Duration.parse(text.strip()).seconds
    except ValueError as error:
        raise ValueError(f"target: {error}") from None
    if not 0.001 <= seconds <= 600.0:
        raise ValueError(f"target: from 1ms to 10m, received {text:.20}")
    return seconds


def _percentile(text: str) -> int | None:
    if not text.strip():
        return None
    if text.strip() not in map(str, PERCENTILES):
        raise ValueError(f"percentile: 90, 95 or 99, received {text!r:.20}")
    return int(text)


def _ceiling(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value <= 0.95:
        raise ValueError(f"ceiling: above 0 and at most 0.95, received {text!r:.20}")
    return value


def _replicas(field: str, text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError(f"{field}: whole replicas from 1 to 1000, received {text!r:.20}")
    return int(text)
