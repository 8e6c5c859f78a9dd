"""Compares modelled with measured latency, where nothing else explains the difference. Pure."""

from __future__ import annotations

from headroom.scaling.frozen import replace
from headroom.scaling.generation.promises.token_promises import WINDOW_S
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.state.state import State
from headroom.scaling.steps.generating import Generating
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.windows.histogram import nearest, percentile


def correct(
    policy: Policy,
    state: State,
    signals: Signals,
    tail: TailLatency | None,
    counts: ReplicaCounts,
    results: RuleResults,
    now_s: float,
) -> State:
    """Compare the model with the measurement, where nothing else explains the difference.

    The ready replicas must have sufficed for the whole stable window; for several windows if all of
    them have a queue above its bound. If only some have one, it is the backlog of a surge.
    Requests that fail whatever the load have no latency.
    """
    if counts.ready < max(1, results.sufficient):
        return replace(state, sufficient_since_s=None)
    since_s = now_s if state.sufficient_since_s is None else state.sufficient_since_s
    since_s = max(since_s, state.ready_since_s)
    correction, rate, windows = state.correction, signals.arrival_rps, state.windows
    window_s = windows.watched_s(now_s, policy.stable_window_s)
    total = windows.total(window_s)
    missed = max(0.0, total.missed - state.failures.share(windows, window_s) * total.ended)
    measured_s = percentile(windows.bounds_s, total.latency, missed, policy.latency_percentile)
    if (
        tail is not None
        and signals.latency_s.fresh
        and measured_s is not None
        and rate.value is not None
    ):
        bound = tail.cost.max_batch * counts.ready
        shared, waiting = signals.standing_queue.value or 0.0, signals.waiting.value or 0.0
        patience_s = policy.stable_window_s * (_QUEUED_WINDOWS if shared > bound else 1)
        backlogs = waiting > bound >= shared
        if now_s - since_s >= patience_s and not backlogs and state.last_s is not None:
            modelled_s = tail.latency_s(rate.value, counts.ready)
            correction = correction.observe(
                nearest(windows.bounds_s, measured_s, modelled_s),
                modelled_s,
                requests=rate.value * policy.stable_window_s,
                elapsed_s=now_s - state.last_s,
                constant_s=policy.tuning.correction_s,
            )
    return replace(state, sufficient_since_s=since_s, correction=correction)


_QUEUED_WINDOWS = 4


def correct_generation(
    state: State,
    generating: Generating,
    counts: ReplicaCounts,
    results: RuleResults,
    now_s: float,
    *,
    surging: bool,
) -> State:
    """Compare measured with modelled tails while the ready replicas have sufficed for a window."""
    fleet, rate = generating.fleet, generating.signals.arrival_rps
    if fleet is None or surging or counts.ready < max(1, results.sufficient):
        return replace(state, sufficient_since_s=None)
    since_s = now_s if state.sufficient_since_s is None else state.sufficient_since_s
    since_s = max(since_s, state.ready_since_s)
    state = replace(state, sufficient_since_s=since_s)
    if now_s - since_s < WINDOW_S or not rate.fresh or not rate.value or state.last_s is None:
        return state
    measured = generating.measured
    if (
        generating.classes.has_best_effort
    ):  # iterations are full whatever the load: it teaches no tail
        measured = {}
    learned = state.generation.corrected(
        fleet.capacity.replica,
        measured,
        rate.value,
        counts.ready,
        now_s - state.last_s,
    )
    return replace(state, generation=learned)
