"""Bounds the replicas for the rate while only full batches have been executed."""

from __future__ import annotations

from collections.abc import Mapping

from headroom.scaling.frozen import replace
from headroom.scaling.rules.queue_rules import most_unknown
from headroom.scaling.rules.rule_inputs import RuleInputs
from headroom.scaling.values.decision import Recommendation
from headroom.scaling.values.tuning import Component


def as_far_as_known(
    rules: Mapping[Component, Recommendation | None], given: RuleInputs
) -> dict[Component, Recommendation | None]:
    """Bound the latency rules where only full batches were seen: by those, or thrice the ready.

    Replicas that were added show smaller batches within a window; until then there is no next step.
    Worked: a batch of 32 takes 13 ms, one of 1 takes 10 ms. For 3000/s within 25 ms two replicas
    do; if one request takes 13 ms as well, 47.
    """
    ceiling, ready = rules[Component.CEILING], given.counts.ready
    most = most_unknown(ready) if given.settled else ready + given.counts.warming
    if ceiling is not None:
        most = max(most, ceiling.replicas)
    return {
        component: rule
        if rule is None or rule.replicas <= most
        else replace(
            rule, replicas=most, detail=f"{rule.detail}; {rule.replicas} if no batch is shorter"
        )
        for component, rule in rules.items()
    }
