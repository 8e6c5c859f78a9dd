"""Golden figures of Headroom and its peers in thirteen short scenarios, to the last digit.

    python -m decision_study.golden             compare; exits with 1 if any figure differs
    python -m decision_study.golden --record    record the figures of this tree

The figures guard the versions in `versions.py`: a change of code that leaves them as they are, such
as a rename, leaves recorded runs valid. A change that moves a figure must raise a version first;
`--record` refuses otherwise. `inputs` and `constants` are recorded next to the figures of runs,
because thirteen scenarios do not reach every cell and every constant.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from decision_study.golden_figures import (
    CONSTANTS,
    FOLDER,
    Figures,
    autoscalers,
    constants,
    inputs,
    measured,
    scenarios,
)

FIGURES = FOLDER / "figures.json"
TOLERANCE = 1e-9
"""Relative: another processor may round the last digit of a logarithm differently."""


def recorded() -> Mapping[str, Figures]:
    """Return the recorded figures, by name."""
    figures: Mapping[str, Figures] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return figures


def differences(
    found: Mapping[str, Figures], expected: Mapping[str, Figures], tolerance: float = TOLERANCE
) -> list[str]:
    """Return one line per figure that differs, and per run without recorded figures."""
    lines = []
    for run, figures in found.items():
        if run not in expected:
            lines.append(f"{run}: has no recorded figures")
            continue
        for name in figures.keys() | expected[run].keys():
            now, then = figures.get(name), expected[run].get(name)
            if run == CONSTANTS and name == "numbers":
                now = sorted((Counter(then) & Counter(now)).elements())  # new ones are no change
            if not _equal(now, then, tolerance):
                lines.append(f"{run}: {name} is {now}, recorded {then}")
    return sorted(lines)


def _equal(now: Any, then: Any, tolerance: float) -> bool:
    if isinstance(now, float) and isinstance(then, float):
        return math.isclose(now, then, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(now, list) and isinstance(then, list):
        return len(now) == len(then) and all(
            _equal(one, other, tolerance) for one, other in zip(now, then, strict=True)
        )
    return bool(now == then)


def unversioned(found: Mapping[str, Figures], expected: Mapping[str, Figures]) -> list[str]:
    """Return the names of runs and inputs whose figures moved while their version did not."""
    return [
        name
        for name, figures in found.items()
        if name in expected
        and figures["version"] == expected[name]["version"]
        and differences({name: figures}, expected)
    ]


def _written(figures: Mapping[str, Figures]) -> str:
    """Return the figures as JSON with one line per run."""
    lines = (f"{json.dumps(run)}: {json.dumps(figures[run])}" for run in sorted(figures))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Compare or record; return the exit status."""
    parser = argparse.ArgumentParser(prog="decision_study.golden")
    parser.add_argument("--record", action="store_true", help="write the figures of this tree")
    given = parser.parse_args(argv)
    found = inputs() | constants()
    for scenario in scenarios():
        for autoscaler in autoscalers(scenario):
            found |= measured(scenario, autoscaler)
    expected = recorded() if FIGURES.exists() else {}
    lines = differences(found, expected, tolerance=0.0)
    if not given.record:
        print("\n".join(lines) or f"{len(found)} entries: every figure is as recorded")
        return 1 if lines else 0
    if blocked := unversioned(found, expected):
        print(f"raise a version in versions.py first; these figures moved: {', '.join(blocked)}")
        return 1
    FIGURES.write_text(_written(found), encoding="utf-8")
    print(f"wrote {len(found)} entries to {FIGURES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
