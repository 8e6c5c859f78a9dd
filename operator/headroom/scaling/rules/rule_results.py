"""Evaluates all rules of a tick and combines their recommendations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.limits.limit_input import DesiredReplicas
from headroom.scaling.promise.margin import NO_MARGIN, Margin
from headroom.scaling.promise.reserve import NO_RESERVE, Reserve, Usual
from headroom.scaling.rules import recommenders
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.values.decision import Recommendation, ReplicaCounts
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.tuning import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResults:
    """What the rules recommend at this tick."""

    known: bool
    """Whether the cost model is known."""
    recommendations: tuple[Recommendation, ...]
    desired: DesiredReplicas
    needed: int
    """The fewest replicas that a removal may leave."""
    needed_by_arrivals: int
    """The part that follows from arrivals and the learned margin, without queues."""
    sufficient: int
    """Replicas that carry the present arrivals, without any forecast."""
    carries: int = 0
    """Replicas that carry the rate of the stable window, without bursts, forecast and margin."""
    kept_because: str = ""
    """Why `needed` is more than the rules recommend, if not by the usual margin of a removal."""

    @property
    def strongest(self) -> Recommendation | None:
        """The rule that recommends the most replicas."""
        return max(self.recommendations, key=lambda rule: rule.replicas, default=None)


def evaluate_rules(
    policy: Policy,
    expected: Expected | None,
    signals: Signals,
    tail: ServingModel | None,
    counts: ReplicaCounts,
    target_s: float,
    backlogs: Sequence[int],
    hidden: Recommendation | None = None,
    margin: Margin = NO_MARGIN,
    reserve: Reserve = NO_RESERVE,
    usual: Usual | None = None,
    start_s: float = 0.0,
    understated: float = 1.0,
    parallel_requests: int | None = None,
) -> RuleResults:
    """Evaluate every rule whose inputs are known.

    `understated` times the counted requests may arrive: a removal must leave enough for them.
    A replica executes `parallel_requests` at once, as its server says; None if unknown. It usually
    starts within `start_s`. `usual` is None unless the service generates.
    """
    tuning, rate_rps = policy.tuning, signals.arrival_rps.value
    load = _Load()
    if tail is not None and expected is not None and rate_rps is not None:
        load = _load(policy, expected, rate_rps, tail, target_s, usual, understated)
    rules = dict(load.rules)
    by_arrivals = _most(rule for component, rule in rules.items() if tuning.has(component))
    if tuning.has(Component.MARGIN):  # learned at the counted rate, which a forecast is not
        rules[Component.MARGIN] = recommenders.for_error_budget(margin, load.carries)
    reachable = tail is None or tail.idle_s <= policy.latency_target_s
    if tuning.has(Component.RESERVE) and reachable:
        rules[Component.RESERVE] = recommenders.for_reserve(
            policy, reserve, load.usually, start_s, usual
        )
    promised = _most([rules.get(Component.MARGIN), rules.get(Component.RESERVE)])
    if tail is not None and expected is not None:
        most_rps = max(expected.later.for_ceiling_rps, expected.burst_rps or 0.0)
        rules[Component.BACKLOG] = recommenders.for_backlog(
            policy, tail, most_rps, backlogs, target_s
        )
    if reachable:  # else more would not help
        rules[Component.QUEUE] = recommenders.for_queue(
            policy,
            tail,
            signals,
            counts=counts,
            target_s=target_s,
            parallel_requests=parallel_requests,
        )
    rules[Component.HIDDEN_DEMAND] = hidden
    passed = len(backlogs) if backlogs and policy.routing.sees_load and load.removal else 0
    every = [rule for component, rule in rules.items() if rule and tuning.has(component)]
    ceiling = rules.get(Component.CEILING)
    desired = _with_replacements(_most(every), counts)
    return RuleResults(
        known=tail is not None,
        recommendations=tuple(every),
        desired=DesiredReplicas(
            replicas=desired,
            by_arrivals=by_arrivals,
            by_ceiling=ceiling.replicas if ceiling else 0,
        ),
        needed=max(desired, load.removal + passed),
        needed_by_arrivals=max(by_arrivals, promised, load.removal),
        sufficient=load.sufficient,
        carries=load.carries,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """What the arrivals require; nothing while they or the cost are not known."""

    rules: Mapping[Component, Recommendation | None] = field(default_factory=dict)
    carries: int = 0
    """Replicas for the present rate."""
    usually: int = 0
    """Replicas for the usual rate, where it is lower."""
    sufficient: int = 0
    removal: int = 0
    """The fewest that a removal may leave, by its margin."""


def _load(
    policy: Policy,
    expected: Expected,
    rate_rps: float,
    tail: ServingModel,
    target_s: float,
    usual: Usual | None,
    understated: float,
) -> _Load:
    rules = _by_arrivals(policy, expected, rate_rps, tail, target_s)
    carries = usually = recommenders.replicas_for_rate(policy, tail, rate_rps, target_s)
    if usual is not None and usual.rate_rps < rate_rps:
        usually = recommenders.replicas_for_rate(policy, tail, usual.rate_rps, target_s)
    removal = 0
    if policy.tuning.has(Component.REMOVAL_MARGIN):
        removal = recommenders.for_removal(policy, tail, expected.most.times(understated), target_s)
    return _Load(
        rules=rules,
        carries=carries,
        usually=usually,
        sufficient=max(carries, _burst(policy, expected, tail, target_s)),
        removal=removal,
    )


def _by_arrivals(
    policy: Policy, expected: Expected, rate_rps: float, tail: ServingModel, target_s: float
) -> dict[Component, Recommendation | None]:
    """Evaluate the rules that depend on arrivals."""
    later = expected.later
    return {
        Component.LATENCY: recommenders.for_latency(
            policy, tail, later.for_latency_rps, target_s, now_rps=rate_rps, occasion=later.occasion
        ),
        Component.CEILING: recommenders.for_utilization(
            policy, tail.cost, later.for_ceiling_rps, now_rps=rate_rps, occasion=later.occasion
        ),
        Component.BURST: recommenders.for_burst(policy, tail, expected.burst_rps, target_s),
    }


def _burst(policy: Policy, expected: Expected, tail: ServingModel, target_s: float) -> int:
    """Return the replicas for the present burst; 0 without one."""
    if expected.burst_rps is None or not policy.tuning.has(Component.BURST):
        return 0
    return recommenders.replicas_for_rate(policy, tail, expected.burst_rps, target_s)


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
