"""Compares the end of an interrupted run with that of an undisturbed one."""

from __future__ import annotations

from dataclasses import dataclass, field

_Condition = tuple[str, str, str]
"""Type, status, reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Learned state of the operator about a service, from its checkpoint."""

    cold_starts: tuple[float, ...] = ()
    batch_sizes: frozenset[float] = frozenset()
    """Bins of batch sizes whose cost is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end state of a run."""

    replicas: tuple[int, ...]
    """Replicas that the Deployment was asked for, each change in order."""
    asked: int
    ready: int
    conditions: frozenset[_Condition] = frozenset()
    owners: frozenset[tuple[str, str]] = frozenset()
    """Field managers of the Deployment and their operations."""
    template: str = ""
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one crash."""

    point: str
    reached: bool
    """False where the run did without the write at which it was to crash."""
    wrongs: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether nothing was wrong."""
        return not self.wrongs


def judge(point: str, wanted: Ending, found: Ending, before: Memory, *, reached: bool) -> Verdict:
    """Compare; `before` is what had been learned and written down when the process died."""
    wrongs = []
    for name, was, now in (
        ("replicas, change by change", wanted.replicas, found.replicas),
        ("desired replicas", wanted.asked, found.asked),
        ("ready replicas", wanted.ready, found.ready),
        ("conditions", sorted(wanted.conditions), sorted(found.conditions)),
        ("owners of the Deployment's fields", sorted(wanted.owners), sorted(found.owners)),
        ("pod template", wanted.template, found.template),
    ):
        if was != now:
            wrongs.append(f"{name}: {now} instead of {was}")
    lost = before.batch_sizes - found.memory.batch_sizes
    if lost:
        wrongs.append(f"learned batch costs lost: {sorted(lost)}")
    kept = found.memory.cold_starts
    forgotten = [start for start in before.cold_starts if start not in kept]
    if forgotten:
        wrongs.append(f"cold starts lost: {forgotten}")
    return Verdict(point=point, reached=reached, wrongs=tuple(wrongs))
