"""Version numbers of everything that decides the result of a recorded run.

A record is valid while its version is the one given here. The numbers are raised by hand, because
only behaviour counts: a renamed class, a moved module or a new docstring leaves thousands of runs
valid. The golden figures (`golden.py`) notice a change of behaviour: their test fails until the
number of what changed is raised and the figures are recorded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from headroom.simulator.autoscalers import catalogue
from results import ROOT, digest

_DECISION: tuple[Path, ...] = (
    ROOT / "operator/headroom/scaling",
    ROOT / "operator/headroom/simulator/autoscalers/headroom.py",
)
PLANT = 1
"""Kernel, arrivals, replicas, telemetry, faults and scores: decides every run."""
CELLS = 1
"""The cells and cases of `cells.py` and `faults_cells.py`: decides every run."""
FAMILY = 1
"""The members of `family/` and what is kept of their runs: decides the family's runs."""
AUTOSCALERS: Mapping[str, int] = dict.fromkeys(catalogue.names(), 1) | {
    "headroom": 35,  # the decision and its tuning
    # Before 2 these summed replicas in the order of a set, which differed from process to process.
    "knative": 2,
    "wva-v1": 2,
    "wva-v2": 2,
}
"""Version of each autoscaler's behaviour at a given setting: decides which of its runs are
valid."""


def version_of(autoscaler: str) -> str:
    """Return the version of this autoscaler's runs."""
    return f"plant {PLANT}, cells {CELLS}, {autoscaler} {AUTOSCALERS[autoscaler]}"


@cache
def family_version_of(autoscaler: str) -> str:
    """Return the version of this autoscaler's runs in the family.

    Headroom's is a digest of the decision's sources: constants are chosen by running it again and
    again on unfinished code.
    """
    number = digest(_DECISION) if autoscaler == "headroom" else str(AUTOSCALERS[autoscaler])
    return f"plant {PLANT}, family {FAMILY}, {autoscaler} {number}"
