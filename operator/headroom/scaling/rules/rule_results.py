"""Evaluates all rules of a tick and combines their recommendations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.frozen import replace
from headroom.scaling.limits.limit_input import DesiredReplicas
from headroom.scaling.rules.full_batches import as_far_as_known
from headroom.scaling.rules.promise_rules import for_error_budget, for_reserve
from headroom.scaling.rules.queue_rules import for_backlog, for_queue
from headroom.scaling.rules.rate_rules import (
    for_burst,
    for_expected,
    for_latency,
    for_removal,
    for_utilization,
    replicas_for_rate,
)
from headroom.scaling.rules.rule_inputs import RuleInputs
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.values.decision import Recommendation, ReplicaCounts
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tuning import Component

Rules = dict[Component, Recommendation | None]
"""Recommendation of each rule; None if it cannot know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResults:
    """Recommendations of the rules at this tick."""

    known: bool
    """Whether the cost model is known."""
    recommendations: tuple[Recommendation, ...]
    desired: DesiredReplicas
    needed: int
    """The fewest replicas that a removal may leave."""
    needed_by_arrivals: int
    """The part that follows from arrivals and the learned margin, without queues."""
    needed_without_risk: int
    """The same without what the learned risk level adds to the forecast."""
    sufficient: int
    """Replicas that carry the present arrivals, without any forecast."""
    carries: int = 0
    """Replicas that carry the rate of the stable window, without bursts, forecast and margin."""
    kept_because: str = ""
    """Reason why `needed` exceeds the recommendations, if not the usual margin of a removal."""

    @property
    def strongest(self) -> Recommendation | None:
        """The rule that recommends the most replicas."""
        return max(self.recommendations, key=lambda rule: rule.replicas, default=None)


def evaluate_rules(given: RuleInputs) -> RuleResults:
    """Evaluate every rule whose inputs are known."""
    has, load = given.policy.tuning.has, _load(given)
    by_arrivals = _most(rule for component, rule in load.rules.items() if has(component))
    promises = _by_promise(given, load)
    hidden = {Component.HIDDEN_DEMAND: given.hidden}
    rules = {**load.rules, **promises, **_by_queue(given), **hidden}
    every = tuple(rule for component, rule in rules.items() if rule and has(component))
    ceiling = rules.get(Component.CEILING)
    desired = _with_replacements(_most(every), given.counts)
    promised = _most(promises.values())
    arrived = calm = max(by_arrivals, promised, load.removal)
    if given.tail is not None and given.without_risk is not None:
        most = given.without_risk.most.times(given.understated)
        usual = replace(given.without_risk, most=most)
        calm = max(promised, for_expected(given.policy, given.tail, usual, given.target_s))
    passed = len(given.backlogs) if given.policy.routing.sees_load and load.removal else 0
    return RuleResults(
        known=given.tail is not None,
        recommendations=every,
        desired=DesiredReplicas(
            replicas=desired,
            by_arrivals=by_arrivals,
            by_ceiling=ceiling.replicas if ceiling else 0,
        ),
        needed=max(desired, load.removal + passed),
        needed_by_arrivals=arrived,
        needed_without_risk=min(arrived, calm),
        sufficient=load.sufficient,
        carries=load.carries,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """Replicas that the arrivals require; none while they or the cost are not known."""

    rules: Mapping[Component, Recommendation | None] = field(default_factory=dict)
    carries: int = 0
    """Replicas for the present rate."""
    usually: int = 0
    """Replicas for the usual rate, where it is lower."""
    sufficient: int = 0
    removal: int = 0
    """The fewest that a removal may leave, by its margin."""


def _load(given: RuleInputs) -> _Load:
    policy, tail, expected = given.policy, given.tail, given.expected
    rate_rps, target_s, usual = given.signals.arrival_rps.value, given.target_s, given.usual
    if tail is None or expected is None or rate_rps is None:
        return _Load()
    carries = usually = replicas_for_rate(policy, tail, rate_rps, target_s)
    if usual is not None and usual.rate_rps < rate_rps:
        usually = replicas_for_rate(policy, tail, usual.rate_rps, target_s)
    removal = 0
    if policy.tuning.has(Component.REMOVAL_MARGIN):
        removal = for_removal(policy, tail, expected.most.times(given.understated), target_s)
    rules = _by_arrivals(policy, expected, rate_rps, tail, target_s)
    if given.full_batches_only:
        rules = as_far_as_known(rules, given)
    return _Load(
        rules=rules,
        carries=carries,
        usually=usually,
        sufficient=max(carries, _burst(policy, expected, tail, target_s)),
        removal=removal,
    )


def _by_arrivals(
    policy: Policy, expected: Expected, rate_rps: float, tail: ServingModel, target_s: float
) -> Rules:
    """Evaluate the rules that depend on arrivals."""
    later = expected.later
    return {
        Component.LATENCY: for_latency(
            policy, tail, later.for_latency_rps, target_s, now_rps=rate_rps, occasion=later.occasion
        ),
        Component.CEILING: for_utilization(
            policy, tail.cost, later.for_ceiling_rps, now_rps=rate_rps, occasion=later.occasion
        ),
        Component.BURST: for_burst(policy, tail, expected.burst_rps, target_s),
    }


def _burst(policy: Policy, expected: Expected, tail: ServingModel, target_s: float) -> int:
    """Return the replicas for the present burst; 0 without one."""
    if expected.burst_rps is None or not policy.tuning.has(Component.BURST):
        return 0
    return replicas_for_rate(policy, tail, expected.burst_rps, target_s)


def _by_promise(given: RuleInputs, load: _Load) -> Rules:
    """Evaluate the rules of the error budget, for replicas that carry the present arrivals."""
    policy, rules = given.policy, Rules()
    if policy.tuning.has(Component.MARGIN):  # learned at the counted rate, which a forecast is not
        rules[Component.MARGIN] = for_error_budget(given.margin, load.carries)
    if policy.tuning.has(Component.RESERVE) and given.reachable:
        rules[Component.RESERVE] = for_reserve(
            policy, given.reserve, load.usually, given.start_s, given.usual
        )
    return rules


def _by_queue(given: RuleInputs) -> Rules:
    """Evaluate the rules of queues."""
    policy, tail, expected, rules = given.policy, given.tail, given.expected, Rules()
    if tail is not None and expected is not None:
        most_rps = max(expected.later.for_ceiling_rps, expected.burst_rps or 0.0)
        rules[Component.BACKLOG] = for_backlog(
            policy, tail, most_rps, given.backlogs, given.target_s
        )
    if given.reachable:  # else more would not help
        rules[Component.QUEUE] = for_queue(
            policy,
            tail,
            given.signals,
            counts=given.counts,
            target_s=given.target_s,
            parallel_requests=given.parallel_requests,
        )
    return rules


def _most(rules: Iterable[Recommendation | None]) -> int:
    return max((rule.replicas for rule in rules if rule is not None), default=0)


def _with_replacements(needed: int, counts: ReplicaCounts) -> int:
    """Return how many replicas to request so that `needed` serve in spite of broken and late ones.

    While one is ready another is worth a try, and a replacement for each while twice as many are
    ready: a fault of the image or the model would be multiplied. Worked: 4 needed, 3 ready, 1
    broken: 5.
    """
    lost = counts.broken + counts.late
    if needed <= counts.ready + counts.warming or not lost or not counts.ready:
        return needed
    return needed + (lost if 2 * lost <= counts.ready else 1)
