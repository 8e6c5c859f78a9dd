"""An exception inside the decision costs the sample that causes it, not the service. Pure.

Which sample it is, is searched by halving: the shortest beginning of the samples that fails ends
with it. It is left out for this tick and named. Where the decision fails without any sample too, or
with each of them, what it remembers is at fault, or the spec: replicas are kept, and after
`RESTART_AFTER` such ticks the decision starts again without what it has learned, so that no
exception recurs in all ticks. No replica is removed in a tick with an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headroom.controller.decide.decide_tick import (
    DecisionInputs,
    DecisionResult,
    ServiceState,
    decide_tick,
)
from headroom.scaling import Decision, Direction, Reason, State
from headroom.scaling.post_rules import PostRuleInputs
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.replica_defect import LeftOut
from headroom.telemetry.samples.pod_samples import PodSamples

RESTART_AFTER = 3
"""Ticks in a row with an exception after which what was learned is discarded."""
MOST_CULPRITS = 2
"""Samples that are searched for in one tick: each takes as many decisions as the samples can be
halved. If there are more, all are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFailure:
    """An exception inside the decision, and its effect."""

    error: Exception
    in_a_row: int
    """Ticks with an exception, with this one."""
    kept: bool
    """Whether nothing was decided: the replicas are kept."""
    restarted: bool = False
    """Whether what was learned was discarded."""

    @property
    def text(self) -> str:
        """The exception's class and message."""
        return f"{type(self.error).__name__}: {self.error}"[:200]


def decide_or_keep(
    inputs: DecisionInputs, known: ServiceState
) -> tuple[DecisionResult, DecisionFailure | None]:
    """Decide; after an exception, decide with the remaining samples, and report it."""
    try:
        return decide_tick(inputs, known), None
    except Exception as error:  # noqa: BLE001  (whatever it is, it must not recur)
        return _recovered(inputs, known, error)


def _recovered(
    inputs: DecisionInputs, known: ServiceState, error: Exception
) -> tuple[DecisionResult, DecisionFailure]:
    in_a_row = known.failed_ticks + 1
    culprits, result = _without_culprits(inputs, known)
    if result is not None and len(culprits) < len(inputs.observation.samples):
        failure = DecisionFailure(error=error, in_a_row=in_a_row, kept=False)
        return _safe(inputs, known, result, failure, culprits), failure
    restart = in_a_row >= RESTART_AFTER
    if restart:
        known = ServiceState(state=State.initial())
        culprits, result = _without_culprits(inputs, known)
    failure = DecisionFailure(error=error, in_a_row=in_a_row, kept=True, restarted=restart)
    return _safe(inputs, known, result, failure, culprits), failure


def _without_culprits(
    inputs: DecisionInputs, known: ServiceState
) -> tuple[tuple[PodSample, ...], DecisionResult | None]:
    """Return the samples that had to be left out, and the result without them; None if none is."""
    every = inputs.observation.samples
    nothing = _attempt(inputs, known, ())
    if nothing is None:
        return every, None
    left = list(every)
    culprits: list[PodSample] = []
    for _ in range(MOST_CULPRITS + 1):
        result = _attempt(inputs, known, left)
        if result is not None:
            return tuple(culprits), result
        culprits.append(left.pop(_first_failing(inputs, known, left)))
    return every, nothing


def _first_failing(inputs: DecisionInputs, known: ServiceState, left: Sequence[PodSample]) -> int:
    """Return the place of the sample with which a beginning of these starts to fail."""
    good, bad = 0, len(left)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _attempt(inputs, known, left[:middle]) is None:
            bad = middle
        else:
            good = middle
    return bad - 1


def _attempt(
    inputs: DecisionInputs, known: ServiceState, samples: Sequence[PodSample]
) -> DecisionResult | None:
    """Decide with these samples only; without any, no page counts for token SLOs either."""
    observation = replace(inputs.observation, samples=tuple(samples))
    pages = inputs.samples
    if not samples:
        pages = PodSamples(pages.profile, pages.model, pages.batch)
    try:
        return decide_tick(replace(inputs, observation=observation, samples=pages), known)
    except Exception:  # noqa: BLE001
        return None


def _safe(
    inputs: DecisionInputs,
    known: ServiceState,
    result: DecisionResult | None,
    failure: DecisionFailure,
    culprits: Sequence[PodSample],
) -> DecisionResult:
    """Return a result that removes nothing, with the samples that were left out."""
    if result is None:
        result = _nothing_decided(inputs, known)
    current, decision = inputs.observation.current, result.decision
    after = result.after
    if decision.replicas < current or (decision.replacement and decision.replacement.deletes):
        decision = replace(
            decision,
            replicas=max(current, decision.replicas),
            direction=Direction.NONE if decision.replicas <= current else decision.direction,
            reason=Reason.DECISION_FAILED,
            message=_message(current),
            replacement=None,
        )
        state = replace(
            after.state,
            decided=decision.replicas,
            flaps=known.state.flaps,
            replacer=known.state.replacer,
        )
        after = replace(after, state=state)
    why = f"its sample makes the decision raise {failure.text}"
    left_out = tuple(LeftOut(pod=one.pod, why=why) for one in culprits)
    return replace(
        result,
        decision=replace(decision, left_out=(*decision.left_out, *left_out)),
        after=replace(after, failed_ticks=failure.in_a_row),
    )


def _nothing_decided(inputs: DecisionInputs, known: ServiceState) -> DecisionResult:
    """Keep the replicas, or bring them to the minimum."""
    policy, current = inputs.policy, inputs.observation.current
    least = min(inputs.min_replicas, policy.max_replicas)
    replicas = max(current, least)
    decision = Decision(
        time_s=inputs.observation.now_s,
        current=current,
        replicas=replicas,
        direction=Direction.UP if replicas > current else Direction.NONE,
        reason=Reason.DECISION_FAILED,
        message=_message(replicas),
    )
    return DecisionResult(
        decision=decision,
        policy=policy,
        before=known.state,
        observation=inputs.observation,
        post_inputs=PostRuleInputs(),
        tokens=known.tokens,
        after=known,
    )


def _message(replicas: int) -> str:
    return f"{replicas} replicas; the decision raised an exception, so none is removed"
