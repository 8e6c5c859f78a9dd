"""Plays a tree of sequences: a replica's report at each tick, and the decisions that follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headroom.api import InferenceService
from headroom.scaling import Policy
from reliability.telemetry.figures import MODEL
from reliability.telemetry.page_faults import TELLS_NOTHING
from reliability.telemetry.sequence_state import SequenceState
from reliability.telemetry.sequence_violations import violation_of
from reliability.telemetry.sequences import TICK_S
from reliability.telemetry.telemetry_outcome import Outcome
from reliability.telemetry.trials import Trial, draw

SEGMENTS = ((8, 1), (4, 4), (3, 4), (3, 4))
"""Ticks, and how many ways lead on by this many from each state: 64 sequences of 36 s in a tree, in
264 ticks."""
RESTARTS_ON = 3
"""The way from a state on which the operator restarts first."""
LATER_EVERY, LATER_S = 16, 1200.0
"""One sequence in this many trees is followed for 20 minutes."""
FORGOTTEN_S = 120.0
"""After what all replicas reported wrongly, the decision is right again: two windows and a hold."""


def run(numbers: Iterable[int]) -> Outcome:
    """Play the trees of these numbers."""
    outcome = Outcome()
    for number in numbers:
        trial = draw(number)
        _go_on(trial, _policy(trial), SequenceState.of(trial), SEGMENTS, outcome)
    return outcome


def _go_on(
    trial: Trial,
    policy: Policy,
    sequence: SequenceState,
    segments: Sequence[tuple[int, int]],
    outcome: Outcome,
) -> None:
    if not segments:
        outcome.sequences += 1
        outcome.steps_up += sequence.stepped
        if trial.number % LATER_EVERY == 1 and set(sequence.path) == {"0"}:
            outcome.later += 1
            _follow(trial, policy, sequence, outcome)
        return
    (ticks, ways), *rest = segments
    for way in range(ways):
        branch = sequence.branch(way)
        if way == RESTARTS_ON:
            try:
                branch.restart()
            except ValueError as error:
                outcome.wrongs.append(f"trial {trial.number} {branch.path}: {error}")
            outcome.restarts += 1
        if any(_ends(trial, policy, branch, outcome) for _ in range(ticks)):
            outcome.sequences += 1
            outcome.steps_up += branch.stepped
        else:
            _go_on(trial, policy, branch, rest, outcome)


def _follow(trial: Trial, policy: Policy, sequence: SequenceState, outcome: Outcome) -> None:
    """Play 20 minutes without a new fault; what was wrong must not matter later."""
    end_s = sequence.now_s + LATER_S
    while sequence.now_s < end_s:
        if _ends(trial, policy, sequence, outcome, honest=True):
            return


def _ends(
    trial: Trial,
    policy: Policy,
    sequence: SequenceState,
    outcome: Outcome,
    *,
    honest: bool = False,
) -> bool:
    """Play a tick; say whether it ended the sequence: by a removal, or by what must not be."""
    sequence.now_s += TICK_S
    outcome.ticks += 1
    where = f"trial {trial.number} {sequence.path}"
    pages = tuple(sequence.pages.next(honest=honest))
    try:
        decided = sequence.decide(policy, pages)
    except Exception as error:  # noqa: BLE001  (one more thing that must not be)
        outcome.wrongs.append(f"{where}: {type(error).__name__}: {error}")
        return True
    for (uid, fault, _, age_s), sample in zip(pages, decided.read, strict=True):
        if fault is not None:
            outcome.faults[fault] += 1
            sequence.faulty_s = sequence.now_s
        if sample is not None:
            sequence.heard_s[uid] = max(sequence.heard_s[uid], sequence.now_s - age_s)
            if fault in TELLS_NOTHING:
                outcome.wrongs.append(f"{where}: {fault} was read as a sample")
    decision = decided.decision
    silent_s = sequence.now_s - min(sequence.heard_s.values())
    needed = trial.all_needed or (
        trial.needed_by_load and sequence.now_s - sequence.faulty_s > FORGOTTEN_S
    )
    wrong = violation_of(trial, decision, silent_s > policy.stale_after_s, needed=needed)
    if wrong:
        outcome.wrongs.append(f"{where}: {wrong}: {decision.message}")
    elif decision.replicas < trial.replicas:
        outcome.removals += 1
    if trial.liars == 1 and not sequence.stepped and decision.replicas > trial.replicas + 1:
        sequence.stepped = True
        outcome.wrongs.append(f"{where}: two steps up: {decision.message}")
    sequence.current = decision.replicas
    return bool(wrong) or decision.replicas < trial.replicas


def _policy(trial: Trial) -> Policy:
    """Return the policy of the resource as users write it."""
    scaling = {
        "minReplicas": trial.min_replicas,
        "maxReplicas": trial.max_replicas,
        "scaleDown": {"stabilizationWindow": f"{trial.hold_s:g}s"},
    }
    manifest = {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": MODEL, "namespace": "default", "uid": "u", "generation": 1},
        "spec": {
            "runtime": {"image": "localhost/none:1"},
            "slo": {"latency": {"target": "1.5s"}},
            "scaling": scaling,
        },
    }
    policy = InferenceService.parse(manifest).to_policy(tick_s=TICK_S)
    return replace(policy, routing=trial.routing)
