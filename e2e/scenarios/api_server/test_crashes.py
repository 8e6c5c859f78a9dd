"""The operator is killed after its most important writes; `make reliability` tries all writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import ControlPlane
from reliability.crashes.crash_runs import explore_all
from reliability.crashes.crash_scenarios import SHORT
from reliability.crashes.crashes import Side
from reliability.testbed.testbed import shared_cluster

pytestmark = pytest.mark.clock

SIDES = (Side.AFTER,)
"""The harder case: the write happened, and no process remembers it."""


async def test_a_crash_after_a_creation_or_a_scaling_changes_nothing(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with shared_cluster(control_plane, tmp_path) as on:
        verdicts = [
            verdict async for verdict in explore_all(on, SHORT, side_by_side=4, sides=SIDES)
        ]
    assert len(verdicts) == len(SHORT) * len(SIDES)
    assert [verdict.wrongs for verdict in verdicts if not verdict.holds] == []
    assert all(verdict.reached for verdict in verdicts)
