"""Generated telemetry through the production path: text, samples, decision.

What must never happen: a number outside the bounds; a removal while all replicas are needed; a
removal although a replica had said nothing for longer than a stale sample is believed.

A decision is a pure function, so sequences share their beginnings: from a state that was reached
once, several go on, each by faults of its own. A sequence is a path through such a tree.
"""

from __future__ import annotations

import functools
import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from headroom.api import InferenceService
from headroom.scaling import Decision, Direction, Observation, Pod, PodState, Policy, State, decide
from headroom.scaling.values import PodSample
from headroom.telemetry import headroom_page
from headroom.telemetry.errors import TelemetryError
from reliability.sequences import MODEL, TELLS_NOTHING, TICK_S, Fault, Pages, Trial, draw
from results import Results, Row

START_S = 1_800_000_000.0
BLOCK = 10
"""Trees that are played, and kept, at a time."""
SEGMENTS = ((8, 1), (4, 4), (3, 4), (3, 4))
"""Ticks, and how many ways lead on by so many from each state: 64 sequences of 36 s in a tree, in
264 ticks."""
PART = "telemetry"


@dataclass(slots=True)
class Outcome:
    """The outcome of a number of sequences."""

    sequences: int = 0
    ticks: int = 0
    removals: int = 0
    """Sequences in which a removal was right and took place: the trial can fail."""
    faults: Counter[Fault] = field(default_factory=Counter)
    """Pages by what was wrong with them."""
    wrongs: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Take in what other sequences came to."""
        self.sequences += other.sequences
        self.ticks += other.ticks
        self.removals += other.removals
        self.faults += other.faults
        self.wrongs += other.wrongs

    @classmethod
    def of(cls, row: Row) -> Self:
        """Read it as it was kept."""
        faults = Counter({Fault(kind): count for kind, count in row["faults"].items()})
        return cls(**{**row, "faults": faults})

    def row(self) -> Row:
        """Return a row for the results."""
        return {**asdict(replace(self, faults=Counter())), "faults": dict(self.faults)}


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


@dataclass(slots=True, kw_only=True)
class _SequenceState:
    """The state of a sequence."""

    pages: Pages
    state: State
    current: int
    heard_s: dict[str, float]
    now_s: float = START_S
    path: str = ""

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Return the start: all replicas serve, and none has been scraped yet."""
        heard_s = {f"pod-{number}": START_S for number in range(trial.replicas)}
        pages = Pages(trial)
        return cls(pages=pages, state=State.initial(), current=trial.replicas, heard_s=heard_s)

    def branch(self, way: int) -> _SequenceState:
        """Go on from here on one of several ways."""
        path = f"{self.path}{way}"
        heard_s = dict(self.heard_s)
        return replace(self, path=path, pages=self.pages.branch(path), heard_s=heard_s)


def _go_on(
    trial: Trial,
    policy: Policy,
    course: _SequenceState,
    segments: Sequence[tuple[int, int]],
    outcome: Outcome,
) -> None:
    if not segments:
        outcome.sequences += 1
        return
    (ticks, ways), *rest = segments
    for way in range(ways):
        branch = course.branch(way)
        if any(_ends(trial, policy, branch, outcome) for _ in range(ticks)):
            outcome.sequences += 1
        else:
            _go_on(trial, policy, branch, rest, outcome)


def _ends(trial: Trial, policy: Policy, course: _SequenceState, outcome: Outcome) -> bool:
    """Play a tick; say whether it ended the sequence: by a removal, or by what must not be."""
    course.now_s += TICK_S
    outcome.ticks += 1
    where = f"trial {trial.number} {course.path}"
    samples = []
    for uid, fault, text, age_s in course.pages.next():
        sample = _sample(text, uid, course.now_s - age_s)
        if fault is not None:
            outcome.faults[fault] += 1
        if sample is not None:
            samples.append(sample)
            course.heard_s[uid] = max(course.heard_s[uid], course.now_s - age_s)
            if fault in TELLS_NOTHING:
                outcome.wrongs.append(f"{where}: {fault} was read as a sample")
    observation = Observation(
        now_s=course.now_s,
        current=course.current,
        pods=_pods(trial.replicas),
        samples=tuple(samples),
    )
    decision, course.state = decide(policy, course.state, observation)
    silent_s = course.now_s - min(course.heard_s.values())
    wrong = _wrong(trial, decision, silent_s > policy.stale_after_s)
    if wrong:
        outcome.wrongs.append(f"{where}: {wrong}: {decision.message}")
    elif decision.direction is Direction.DOWN:
        outcome.removals += 1
    course.current = max(course.current, decision.replicas)
    return bool(wrong) or decision.direction is Direction.DOWN


def _wrong(trial: Trial, decision: Decision, silent: bool) -> str:
    """Say what must not be; empty: all is well."""
    if not trial.min_replicas <= decision.replicas <= trial.max_replicas:
        return f"{decision.replicas} replicas are out of bounds"
    if decision.direction is Direction.DOWN and trial.all_needed:
        return f"{decision.replicas} of {trial.replicas} replicas, though all are needed"
    if decision.direction is Direction.DOWN and silent:
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


def _sample(text: str | None, uid: str, now_s: float) -> PodSample | None:
    """Read a page as a tick does; what cannot be read is no sample."""
    if text is None:
        return None
    try:
        return headroom_page.read_sample(text, pod=uid, model=MODEL, time_s=now_s)
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
    return InferenceService.parse(manifest).to_policy(tick_s=TICK_S)
