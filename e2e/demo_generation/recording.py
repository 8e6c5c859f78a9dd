"""The record of a run that generates: snapshots at the cluster, and each answer of the load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from demo.recording import Run, Snapshot
from headroom.scaling.values.tokens import TokenTargets
from load.token_messages import Answer, Began, Concluded, Promises, read_all


@dataclass(slots=True)
class TokenRecording(Run):
    """One run, as it grows."""

    began: Began | None = None
    answers: dict[int, Answer] = field(default_factory=dict)
    """Answers by number."""
    concluded: Concluded | None = None

    def add_log(self, text: str) -> None:
        """Add the load's messages."""
        for message in read_all(text):
            match message:
                case Began():
                    self.began = message
                case Answer():
                    self.answers.setdefault(message.number, message)
                case Concluded():
                    self.concluded = message

    @property
    def start_s(self) -> float:
        """Return when the first request was due."""
        return self.began.unix_s if self.began else math.inf

    @property
    def duration_s(self) -> float:
        """Return the seconds of all steps."""
        return self.began.duration_s if self.began else 0.0

    def ended_since(self, at_s: float) -> list[Answer]:
        """Return the answers that ended after this second of the load."""
        return [one for one in self.answers.values() if one.due_s + (one.ended_s or 0.0) > at_s]

    def due_since(self, at_s: float) -> list[Answer]:
        """Return the answers to requests that were due from this second of the load on."""
        return [one for one in self.answers.values() if one.due_s >= at_s]


@dataclass(frozen=True, slots=True)
class Window:
    """The requests that were due in some seconds of the load."""

    start_s: float
    answers: tuple[Answer, ...]


def windows(run: TokenRecording, window_s: float) -> Iterator[Window]:
    """Yield every window of the load, empty ones included."""
    by_window: dict[int, list[Answer]] = {}
    for one in run.answers.values():
        by_window.setdefault(int(one.due_s // window_s), []).append(one)
    for index in range(math.ceil(run.duration_s / window_s)):
        yield Window(index * window_s, tuple(by_window.get(index, ())))


def promises(targets: TokenTargets) -> Promises:
    """Return what each answer is held to."""
    first, output = targets.first_token, targets.output_token
    return Promises(
        first_token_s=first.seconds if first else math.inf,
        output_token_s=output.seconds if output else math.inf,
    )


def capacity_rps(snapshot: Snapshot) -> float | None:
    """Return what the ready replicas carry within all bounds; None while it is not known."""
    generation = snapshot.service.generation
    if generation is None or generation.capacity_per_replica is None:
        return None
    return snapshot.service.ready * generation.capacity_per_replica


def bindings(snapshots: Sequence[Snapshot]) -> list[tuple[float, str]]:
    """Return when what binds a replica changed, and to what."""
    found: list[tuple[float, str]] = []
    for snapshot in snapshots:
        binding = snapshot.service.generation.binding if snapshot.service.generation else None
        if binding is not None and (not found or found[-1][1] != binding):
            found.append((snapshot.time_s, binding))
    return found
