"""Finds the changes of a service's replicas, and the delay of its status behind each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from demo.recording import Snapshot, decisions
from demo.views import DecisionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The Deployment's replicas moved."""

    time_s: float
    before: int
    after: int
    by_operator: bool
    """Whether the operator's field manager alone owned the number afterwards."""
    decision: DecisionView | None
    """The decision in the status that asked for exactly this."""


def changes(snapshots: Sequence[Snapshot]) -> list[Change]:
    """Each change of the Deployment's replicas, with the decision behind it."""
    decided = decisions(snapshots)
    found = []
    for before, after in pairwise(snapshots):
        if before.workload.replicas == after.workload.replicas:
            continue
        found.append(
            Change(
                time_s=after.time_s,
                before=before.workload.replicas,
                after=after.workload.replicas,
                by_operator=after.workload.written_by_operator,
                decision=_behind(decided, before.time_s, after),
            )
        )
    return found


SECONDS_TRUNCATED_S = 1.0
STATUS_FOLLOWS_S = 3.0
"""A status comes after the scale write of its tick, and its time has whole seconds."""


def _behind(
    decided: Sequence[DecisionView], before_s: float, after: Snapshot
) -> DecisionView | None:
    earliest_s = before_s - STATUS_FOLLOWS_S - SECONDS_TRUNCATED_S
    for decision in decided:
        if (
            decision.replicas == after.workload.replicas
            and earliest_s <= decision.time_s <= after.time_s + STATUS_FOLLOWS_S
        ):
            return decision
    return None
