"""Computes the decision for another SLO or other bounds, with the production rules. Pure.

It uses the last evaluation: its windows, its pods, its time. So the answer differs from the
actual decision only by the changed values.
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
from headroom.scaling.values.tokens import Target, TokenTargets

TARGETS = (0.5, 0.75, 1.5, 2.0)
"""Factors of the present target to show as alternatives."""
CEILINGS = (0.6, 0.7, 0.8, 0.9)
PERCENTILES = (90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The values to change; None keeps the present one."""

    target_s: float | None = None
    percentile: int | None = None
    ceiling: float | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    first_token_s: float | None = None
    output_token_s: float | None = None

    def applied(self, policy: Policy) -> Policy:
        """Return the changed policy.

        Raises ValueError if minReplicas exceeds maxReplicas, or for a promise that is not there.
        """
        changed = replace(
            policy,
            latency_target_s=self.target_s or policy.latency_target_s,
            latency_percentile=(
                policy.latency_percentile if self.percentile is None else self.percentile / 100
            ),
            utilization_ceiling=self.ceiling or policy.utilization_ceiling,
            min_replicas=self.min_replicas or policy.min_replicas,
            max_replicas=self.max_replicas or policy.max_replicas,
            token_targets=self._token_targets(policy.token_targets),
        )
        if changed.min_replicas > changed.max_replicas:
            raise ValueError(
                f"minReplicas must be at most maxReplicas; got {changed.min_replicas} "
                f"and {changed.max_replicas}"
            )
        return changed

    def _token_targets(self, present: TokenTargets | None) -> TokenTargets | None:
        changed = present or TokenTargets()
        for name, seconds, field in (
            ("first_token", self.first_token_s, "timeToFirstToken"),
            ("output_token", self.output_token_s, "timePerOutputToken"),
        ):
            if seconds is None:
                continue
            target: Target | None = getattr(changed, name)
            if target is None:
                raise ValueError(f"{name}: the service has no slo.{field} to change")
            changed = replace(changed, **{name: replace(target, seconds=seconds)})
        return None if present is None else changed


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


def parsed(fields: Mapping[str, str]) -> Changes:
    """Read the fields of a form; an empty field keeps its value.

    Raises ValueError with field, rule and value.
    """
    return Changes(
        target_s=_target_s("target", fields.get("target", "")),
        percentile=_percentile(fields.get("percentile", "")),
        ceiling=_ceiling(fields.get("ceiling", "")),
        min_replicas=_replicas("min", fields.get("min", "")),
        max_replicas=_replicas("max", fields.get("max", "")),
        first_token_s=_target_s("first_token", fields.get("first_token", "")),
        output_token_s=_target_s("output_token", fields.get("output_token", "")),
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


def _target_s(field: str, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        seconds = Duration.parse(text.strip()).seconds
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    if not 0.001 <= seconds <= 600.0:
        raise ValueError(f"{field} must be between 1ms and 10m; got {text:.20}")
    return seconds


def _percentile(text: str) -> int | None:
    if not text.strip():
        return None
    if text.strip() not in map(str, PERCENTILES):
        raise ValueError(f"percentile must be 90, 95 or 99; got {text!r:.20}")
    return int(text)


def _ceiling(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= 0.95:
        raise ValueError(f"ceiling must be from 0.01 to 0.95; got {text!r:.20}")
    return value


def _replicas(field: str, text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError(f"{field} must be a whole number from 1 to 1000; got {text!r:.20}")
    return int(text)
