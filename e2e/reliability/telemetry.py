"""Generated telemetry through the production path: text, samples, decision.

What must never happen: a number outside the bounds; an exception; a removal while all replicas are
needed; a removal although a replica had said nothing for longer than a stale sample is believed.

In half of the trees the pages are well-formed and wrong: those of one replica, or of all. While all
replicas agree on a wrong figure that a server could have, no observer can know, and removals are
not judged until `FORGOTTEN_S` after it; what one replica reports against the others must remove
nothing at any time.

A decision is a pure function, so sequences share their beginnings: from a state that was reached
once, several go on, each by faults of its own. A sequence is a path through such a tree. Where two
have had the same pages so far, the decision is made once.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple, Self

from headroom.api import InferenceService
from headroom.profiles.headroom import HEADROOM
from headroom.scaling import Decision, Direction, Observation, Pod, PodState, Policy, State, decide
from headroom.scaling.replica_defect import Defect
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pod_samples import PodSamples
from reliability.figures import MODEL
from reliability.lies import Lie
from reliability.sequences import TELLS_NOTHING, TICK_S, Fault, Pages, Scraped, Trial, draw
from results import Results, Row

START_S = 1_800_000_000.0
BLOCK = 10
"""Trees that are played, and kept, at a time."""
SEGMENTS = ((8, 1), (4, 4), (3, 4), (3, 4))
"""Ticks, and how many ways lead on by so many from each state: 64 sequences of 36 s in a tree, in
264 ticks."""
PART = "telemetry"
RESTARTS_ON = 3
"""The way from a state on which the operator restarts first."""
LATER_EVERY, LATER_S = 16, 1200.0
"""Of so many trees one sequence is followed for 20 minutes."""
FORGOTTEN_S = 120.0
"""After what all replicas reported wrongly, the decision is right again: two windows and a hold."""


@dataclass(slots=True)
class Outcome:
    """The outcome of a number of sequences."""

    sequences: int = 0
    ticks: int = 0
    removals: int = 0
    """Sequences in which a removal was right and took place: the trial can fail."""
    later: int = 0
    """Sequences that were followed for 20 minutes after the last fault."""
    restarts: int = 0
    """Operators that went on from a checkpoint."""
    steps_up: int = 0
    """Sequences in which one replica alone caused more than one step up."""
    faults: Counter[Fault | Lie] = field(default_factory=Counter)
    """Pages by what was wrong with them."""
    wrongs: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Take in what other sequences came to."""
        self.sequences += other.sequences
        self.ticks += other.ticks
        self.removals += other.removals
        self.later += other.later
        self.restarts += other.restarts
        self.steps_up += other.steps_up
        self.faults += other.faults
        self.wrongs += other.wrongs

    @classmethod
    def of(cls, row: Row) -> Self:
        """Read it as it was kept."""
        faults = Counter({_kind(kind): count for kind, count in row["faults"].items()})
        return cls(**{**row, "faults": faults})

    def row(self) -> Row:
        """Return a row for the results."""
        return {**asdict(replace(self, faults=Counter())), "faults": dict(self.faults)}


def _kind(text: str) -> Fault | Lie:
    return Fault(text) if text in {kind.value for kind in Fault} else Lie(text)


def run(numbers: Iterable[int]) -> Outcome:
    """Play the trees of these numbers."""
    outcome = Outcome()
    for number in numbers:
        trial = draw(number)
        _go_on(trial, _policy(trial), _SequenceState.of(trial), SEGMENTS, outcome)
    return outcome


def run_side_by_side(count: int, workers: int, results: Results | None = None) -> Outcome:
    """Play the first so many trees in several processes, but those whose outcome is kept."""
    total, left = Outcome(), []
    for start in range(0, count, BLOCK):
        numbers = range(start, min(start + BLOCK, count))
        row = results.get(PART, str(numbers)) if results else None
        if row is None:
            left.append(numbers)
        else:
            total.add(Outcome.of(row))
    pool = ProcessPoolExecutor(
        workers, initializer=signal.signal, initargs=(signal.SIGTERM, signal.SIG_DFL)
    )
    try:
        for numbers, outcome in zip(left, pool.map(run, left), strict=True):
            total.add(outcome)
            if results is not None:
                results.put(PART, str(numbers), outcome.row())
    except BaseException:  # a block may take minutes on a machine that is busy
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return total


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
    course: _SequenceState,
    segments: Sequence[tuple[int, int]],
    outcome: Outcome,
) -> None:
    if not segments:
        outcome.sequences += 1
        outcome.steps_up += course.stepped
        if trial.number % LATER_EVERY == 1 and set(course.path) == {"0"}:
            outcome.later += 1
            _follow(trial, policy, course, outcome)
        return
    (ticks, ways), *rest = segments
    for way in range(ways):
        branch = course.branch(way)
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


def _follow(trial: Trial, policy: Policy, course: _SequenceState, outcome: Outcome) -> None:
    """Play 20 minutes without a new fault; what was wrong must not matter later."""
    end_s = course.now_s + LATER_S
    while course.now_s < end_s:
        if _ends(trial, policy, course, outcome, honest=True):
            return


def _ends(
    trial: Trial, policy: Policy, course: _SequenceState, outcome: Outcome, *, honest: bool = False
) -> bool:
    """Play a tick; say whether it ended the sequence: by a removal, or by what must not be."""
    course.now_s += TICK_S
    outcome.ticks += 1
    where = f"trial {trial.number} {course.path}"
    pages = tuple(course.pages.next(honest=honest))
    try:
        decided = course.decide(policy, pages)
    except Exception as error:  # noqa: BLE001  (one more thing that must not be)
        outcome.wrongs.append(f"{where}: {type(error).__name__}: {error}")
        return True
    for (uid, fault, _, age_s), sample in zip(pages, decided.read, strict=True):
        if fault is not None:
            outcome.faults[fault] += 1
            course.faulty_s = course.now_s
        if sample is not None:
            course.heard_s[uid] = max(course.heard_s[uid], course.now_s - age_s)
            if fault in TELLS_NOTHING:
                outcome.wrongs.append(f"{where}: {fault} was read as a sample")
    decision = decided.decision
    silent_s = course.now_s - min(course.heard_s.values())
    needed = trial.all_needed or (
        trial.needed_by_load and course.now_s - course.faulty_s > FORGOTTEN_S
    )
    wrong = _wrong(trial, decision, silent_s > policy.stale_after_s, needed=needed)
    if wrong:
        outcome.wrongs.append(f"{where}: {wrong}: {decision.message}")
    elif decision.replicas < trial.replicas:
        outcome.removals += 1
    if trial.liars == 1 and not course.stepped and decision.replicas > trial.replicas + 1:
        course.stepped = True
        outcome.wrongs.append(f"{where}: two steps up: {decision.message}")
    course.current = decision.replicas
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


def _sample(scraped: Scraped, course: _SequenceState) -> PodSample | None:
    """Read a page as a tick does; what cannot be read is no sample."""
    if scraped.page is None:
        return None
    time_s = course.now_s - scraped.age_s
    try:
        return course.samples.take(scraped.page, pod=scraped.pod, time_s=time_s)
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
