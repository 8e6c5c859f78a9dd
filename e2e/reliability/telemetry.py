"""Generated telemetry through the production path: text, samples, decision.

What must never happen: a number outside the bounds; a removal while all replicas are needed; a
removal although a replica had said nothing for longer than a stale sample is believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from headroom.api import InferenceService
from headroom.scaling import Direction, Observation, Pod, PodState, Policy, State, decide
from headroom.scaling.values import PodSample
from headroom.telemetry import headroom_profile
from headroom.telemetry.errors import TelemetryError
from reliability.sequences import MODEL, TELLS_NOTHING, TICK_S, Fault, Pages, Trial, draw

START_S = 1_800_000_000.0
BLOCK = 500


@dataclass(slots=True)
class Outcome:
    """What a number of sequences came to."""

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


def run(numbers: Iterable[int]) -> Outcome:
    """Play these sequences."""
    outcome = Outcome()
    for number in numbers:
        _play(draw(number), outcome)
    return outcome


def run_side_by_side(count: int, workers: int, first: int = 0) -> Outcome:
    """Play so many sequences in several processes."""
    total = Outcome()
    blocks = [
        range(start, min(start + BLOCK, first + count))
        for start in range(first, first + count, BLOCK)
    ]
    with ProcessPoolExecutor(workers) as pool:
        for outcome in pool.map(run, blocks):
            total.add(outcome)
    return total


def _play(trial: Trial, outcome: Outcome) -> None:
    policy, pages, state = _policy(trial), Pages(trial), State.initial()
    current, now_s = trial.replicas, START_S
    pods = tuple(
        Pod(
            uid=f"pod-{number}",
            state=PodState.READY,
            created_s=START_S - 100.0,
            ready_s=START_S - 50.0,
        )
        for number in range(trial.replicas)
    )
    heard_s = dict.fromkeys((pod.uid for pod in pods), START_S)
    longest_s = 0.0
    outcome.sequences += 1
    for _ in range(trial.ticks):
        now_s += TICK_S
        outcome.ticks += 1
        samples = []
        for uid, fault, text in pages.next():
            sample = _sample(text, uid, now_s)
            if fault is not None:
                outcome.faults[fault] += 1
            if sample is not None:
                samples.append(sample)
                heard_s[uid] = now_s
                if fault in TELLS_NOTHING:
                    outcome.wrongs.append(f"trial {trial.number}: {fault} was read as a sample")
        longest_s = now_s - min(heard_s.values())
        observation = Observation(now_s=now_s, current=current, pods=pods, samples=tuple(samples))
        decision, state = decide(policy, state, observation)
        wrong = ""
        if not trial.min_replicas <= decision.replicas <= trial.max_replicas:
            wrong = f"{decision.replicas} replicas are out of bounds"
        elif decision.direction is Direction.DOWN:
            if trial.all_needed:
                wrong = f"{current} -> {decision.replicas}, though all are needed"
            elif longest_s > policy.stale_after_s:
                wrong = f"a removal after {longest_s:g} s of silence"
            else:
                outcome.removals += 1
        if wrong:
            outcome.wrongs.append(f"trial {trial.number}: {wrong}: {decision.message}")
        if decision.direction is Direction.DOWN or wrong:
            return
        current = max(current, decision.replicas)


def _sample(text: str | None, uid: str, now_s: float) -> PodSample | None:
    """Read a page as a tick does; what cannot be read is no sample."""
    if text is None:
        return None
    try:
        return headroom_profile.read_sample(text, pod=uid, model=MODEL, time_s=now_s)
    except TelemetryError:
        return None


def _policy(trial: Trial) -> Policy:
    """What the resource as users write it makes of it."""
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
