"""Plays a tree of sequences: what a replica reports at each tick, and the decisions that follow."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from headroom.api import InferenceService
from headroom.profiles.headroom import HEADROOM
from headroom.scaling import Decision, Direction, Observation, Pod, PodState, Policy, State, decide
from headroom.scaling.replica_defect import Defect
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pod_samples import PodSamples
from reliability.figures import MODEL
from reliability.sequences import TELLS_NOTHING, TICK_S, Pages, Scraped, Trial, draw
from reliability.telemetry_outcome import Outcome

START_S = 1_800_000_000.0
SEGMENTS = ((8, 1), (4, 4), (3, 4), (3, 4))
"""Ticks, and how many ways lead on by so many from each state: 64 sequences of 36 s in a tree, in
264 ticks."""
RESTARTS_ON = 3
"""The way from a state on which the operator restarts first."""
LATER_EVERY, LATER_S = 16, 1200.0
"""One sequence in so many trees is followed for 20 minutes."""
FORGOTTEN_S = 120.0
"""After what all replicas reported wrongly, the decision is right again: two windows and a hold."""


def run(numbers: Iterable[int]) -> Outcome:
    """Play the trees of these numbers."""
    outcome = Outcome()
    for number in numbers:
        trial = draw(number)
        _go_on(trial, _policy(trial), _SequenceState.of(trial), SEGMENTS, outcome)
    return outcome


_Pages = tuple[int, int, tuple[Scraped, ...]]
"""The identity of the state before, the replicas, and the pages of a tick."""


class _Decided(NamedTuple):
    """What followed from the pages of a tick."""

    before: State
    """Kept, so that its identity is that of no other state."""
    read: tuple[PodSample | None, ...]
    decision: Decision
    state: State
    samples: PodSamples


@dataclass(slots=True, kw_only=True)
class _SequenceState:
    """The state of a sequence."""

    pages: Pages
    samples: PodSamples
    state: State
    current: int
    heard_s: dict[str, float]
    now_s: float = START_S
    faulty_s: float = START_S
    """When the last page with a fault was read."""
    stepped: bool = False
    """Whether one replica alone caused more than one step up."""
    path: str = ""
    decided: dict[_Pages, _Decided] = field(default_factory=dict)
    """What was decided of the same pages in the same state: of the whole tree."""

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Return the start: all replicas serve, and none has been scraped yet."""
        heard_s = {f"pod-{number}": START_S for number in range(trial.replicas)}
        return cls(
            pages=Pages(trial),
            samples=PodSamples(HEADROOM, MODEL),
            state=State.initial(),
            current=trial.replicas,
            heard_s=heard_s,
        )

    def branch(self, way: int) -> _SequenceState:
        """Go on from here on one of several ways."""
        path = f"{self.path}{way}"
        return replace(
            self,
            path=path,
            pages=self.pages.branch(path),
            samples=self.samples.copy(),
            heard_s=dict(self.heard_s),
        )

    def restart(self) -> None:
        """Go on as another operator, from the checkpoint in the object's status."""
        kept = json.loads(json.dumps(self.state.to_checkpoint()))
        self.state = State.from_checkpoint(kept)
        self.samples = PodSamples(HEADROOM, MODEL)

    def decide(self, policy: Policy, pages: tuple[Scraped, ...]) -> _Decided:
        """Read these pages and decide, unless a sequence with the same past had the same ones."""
        key = id(self.state), self.current, pages
        known = self.decided.get(key)
        if known is None:
            read = tuple(_sample(scraped, self) for scraped in pages)
            observation = Observation(
                now_s=self.now_s,
                current=self.current,
                pods=_pods(len(pages)),
                samples=tuple(one for one in read if one is not None),
            )
            decision, state = decide(policy, self.state, observation)
            known = _Decided(self.state, read, decision, state, self.samples.copy())
            self.decided[key] = known
        else:
            self.samples = known.samples.copy()
        self.state = known.state
        return known


def _go_on(
    trial: Trial,
    policy: Policy,
    sequence: _SequenceState,
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


def _follow(trial: Trial, policy: Policy, sequence: _SequenceState, outcome: Outcome) -> None:
    """Play 20 minutes without a new fault; what was wrong must not matter later."""
    end_s = sequence.now_s + LATER_S
    while sequence.now_s < end_s:
        if _ends(trial, policy, sequence, outcome, honest=True):
            return


def _ends(
    trial: Trial,
    policy: Policy,
    sequence: _SequenceState,
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
    wrong = _wrong(trial, decision, silent_s > policy.stale_after_s, needed=needed)
    if wrong:
        outcome.wrongs.append(f"{where}: {wrong}: {decision.message}")
    elif decision.replicas < trial.replicas:
        outcome.removals += 1
    if trial.liars == 1 and not sequence.stepped and decision.replicas > trial.replicas + 1:
        sequence.stepped = True
        outcome.wrongs.append(f"{where}: two steps up: {decision.message}")
    sequence.current = decision.replicas
    return bool(wrong) or decision.replicas < trial.replicas


def _wrong(trial: Trial, decision: Decision, silent: bool, *, needed: bool) -> str:
    """Say what must not be; empty: all is well."""
    if not trial.min_replicas <= decision.replicas <= trial.max_replicas:
        return f"{decision.replicas} replicas are out of bounds"
    found = decision.replacement
    if found is not None and found.deletes and found.defect is Defect.OVERLOADED:
        if needed:
            return f"{found.pod} is evicted, though all are needed"
        if silent:
            return "an eviction to spread connections while a replica is silent"
    if decision.direction is not Direction.DOWN:
        return ""
    if decision.replicas < trial.replicas and needed:
        return f"{decision.replicas} of {trial.replicas} replicas, though all are needed"
    if silent:
        return "a removal while a replica is silent"
    return ""


@functools.cache
def _pods(replicas: int) -> tuple[Pod, ...]:
    return tuple(
        Pod(
            uid=f"pod-{number}",
            state=PodState.READY,
            created_s=START_S - 100.0,
            ready_s=START_S - 50.0,
        )
        for number in range(replicas)
    )


def _sample(scraped: Scraped, sequence: _SequenceState) -> PodSample | None:
    """Read a page as a tick does; what cannot be read is no sample."""
    if scraped.page is None:
        return None
    time_s = sequence.now_s - scraped.age_s
    try:
        return sequence.samples.take(scraped.page, pod=scraped.pod, time_s=time_s)
    except TelemetryError:
        return None


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
