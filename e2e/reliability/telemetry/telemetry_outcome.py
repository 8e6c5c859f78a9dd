"""Result of generated sequences of telemetry: counts, and the wrong decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from reliability.telemetry.lies import Lie
from reliability.telemetry.page_faults import Fault
from results import Row


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
