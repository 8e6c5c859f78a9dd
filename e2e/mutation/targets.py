"""PURE. Which modules are broken, and the tests that should notice, nearest first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

SCALING = PurePosixPath("operator/headroom/scaling")
CONTROLLER = PurePosixPath("operator/headroom/controller")
GUARDS = (
    *("act", "cache", "competition", "conflicts", "contest", "drift", "external", "freshness"),
    *("gather", "lineage", "memory", "ownership", "pods", "pool", "scheduler"),
    *("leadership/candidate", "leadership/guard", "leadership/record"),
)
"""What keeps the controller from a wrong write."""
DATA = ("surface_table",)
"""Numbers that a generator wrote: their errors are measured against the simulator."""
FOLDERS = {
    SCALING: ("tests/scaling", "tests/controller"),
    CONTROLLER: ("tests/controller", "tests/leadership", "tests/reliability"),
}


def targets(present: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Return the modules that are broken, of those present."""
    wanted = {CONTROLLER / f"{guard}.py" for guard in GUARDS}
    return sorted(
        path
        for path in present
        if path in wanted or (path.parent == SCALING and path.stem not in ("__init__", *DATA))
    )


def nearest_tests(module: PurePosixPath, present: Sequence[PurePosixPath]) -> list[str]:
    """Return what to run until something fails: the tests that name the module, then all others.

    `present` are all test files. Worked: scaling/limits.py runs tests/scaling/test_limits.py first,
    then tests/scaling, then tests/controller.
    """
    package = SCALING if module.is_relative_to(SCALING) else CONTROLLER
    folders = [folder for folder in FOLDERS[package] if _inside(folder, present)]
    named = [
        str(path)
        for path in present
        if module.stem in path.stem and any(path.is_relative_to(folder) for folder in folders)
    ]
    return [*named, *folders]


def _inside(folder: str, present: Sequence[PurePosixPath]) -> bool:
    return any(path.is_relative_to(folder) for path in present)
