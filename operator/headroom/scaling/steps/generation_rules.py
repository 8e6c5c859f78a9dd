"""Rules of a generating service that differ: bursts, surges, the reserve and removals."""

from __future__ import annotations

from collections.abc import Collection
from statistics import median_low

from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet import surge
from headroom.scaling.promise.reserve import USUAL_S, Usual
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.state.state import State
from headroom.scaling.steps.generating import Generating
from headroom.scaling.values.decision import Recommendation, ReplicaCounts
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.observation import Observation, PodState
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tuning import HOUR_S
from headroom.scaling.windows.sliding_windows import Windows


def beyond_chance(
    policy: Policy, generating: Generating | None, expected: Expected | None
) -> Expected | None:
    """Return the expected rates; of a generating service's burst, the part beyond chance counts.

    Its requests are few and last long, so a clump of some seconds is soon spread, while a replica
    for it would be paid for through a start and a hold.
    """
    if generating is None or generating.fleet is None or expected is None or not expected.burst_rps:
        return expected
    window_s = min(policy.burst_windows_s, default=policy.tick_s)
    return replace(expected, burst_rps=surge.surely_rps(expected.burst_rps, window_s))


def usual(policy: Policy, state: State, generating: Generating | None) -> Usual | None:
    """Return the inputs of a generating service's reserve; None for any other service.

    Nor where a start takes longer than the error budget of an hour: what is kept after a surge that
    spent all of it comes too late.
    """
    allowed = 1.0 - policy.latency_percentile
    long = state.cold_starts.assumed_s >= allowed * HOUR_S
    if generating is None or generating.fleet is None or long:
        return None
    rates = state.forecast.analogs.history
    return Usual.of(rates.mean_rps(USUAL_S), rates.mean_rps(HOUR_S), state.budget, allowed)


def for_surge(
    policy: Policy,
    state: State,
    generating: Generating | None,
    expected: Expected | None,
    observation: Observation,
    counts: ReplicaCounts,
    ready: Collection[str],
    hidden: Recommendation | None,
) -> Recommendation | None:
    """N_surge: replicas for the arrivals and for the queue that forms until they are ready.

    It takes the place of the rule for hidden demand: what waiting clients hold back shows in what
    is in flight, and to assume more has doubled services for nothing.
    """
    if generating is None or generating.fleet is None:
        return hidden
    fleet, in_flight = generating.fleet, generating.signals.in_flight
    if expected is None or not in_flight.fresh or in_flight.value is None:
        return None
    start_s = state.cold_starts.assumed_s
    targets = fleet.capacity.replica.targets
    # what only a forecast expects has formed no queue: the other rules have replicas for it in time
    present_rps = min(expected.later.for_ceiling_rps, generating.signals.arrival_rps.value or 0.0)
    found = surge.Surge(
        arrival_rps=max(present_rps, expected.burst_rps or 0.0),
        in_flight=_in_flight(state.windows, ready),
        left_s=[
            max(0.0, start_s - (observation.now_s - pod.started_s))
            for pod in observation.pods
            if pod.state is PodState.WARMING
        ],
        start_s=start_s,
        most_rps=fleet.capacity.most_rps,
        saturated_rps=fleet.capacity.saturated_rps,
        fit=fleet.cost.concurrency,
        target_s=targets.first_token.seconds if targets.first_token else policy.latency_target_s,
        rejected=observation.rejected_at_gateway is not None and not state.classes.has_best_effort,
    )
    capacity_rps = fleet.capacity_rps(policy.latency_target_s, max(1, observation.current))
    replicas = found.replicas(capacity_rps, sees_load=policy.routing.sees_load)
    if not replicas:
        return None
    if found.behind:  # a queue that lasts says that replicas take less than they seem to
        replicas = max(replicas, counts.ready + counts.warming)
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=replicas,
        detail=f"{found.arrival_rps:.3g}/s over {capacity_rps:.3g}/s per replica, and "
        f"{found.queue:.0f} requests that will wait when further ones are ready",
    )


def _in_flight(windows: Windows, ready: Collection[str]) -> list[int]:
    """Return the requests at each ready replica: at a silent one those of its last page.

    At one that was never scraped as many as at the median of the others.
    """
    known = [one.waiting + one.running for one in windows.latest(ready)]
    return known + [median_low(known)] * (len(ready) - len(known)) if known else []


def until_seen(generating: Generating | None, state: State, results: RuleResults) -> RuleResults:
    """Return the rules' results, with removals only as far as the cost is known."""
    if generating is None or generating.fleet is None:
        return results
    least = state.generation.seen_load.least_replicas(generating.signals.in_flight.value or 0.0)
    if least <= results.needed:
        return results
    return replace(
        results,
        needed=least,
        kept_because=f"a replica has carried at most {state.generation.seen_load.in_flight:.2g} "
        "requests at once, and what it carries beyond twice as many is not known yet",
    )
