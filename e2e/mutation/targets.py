"""Selects the modules to mutate, and the tests that should notice, nearest first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

SCALING = PurePosixPath("operator/headroom/scaling")
CONTROLLER = PurePosixPath("operator/headroom/controller")
GUARDS = (
    *("services/service_cache", "services/resync", "services/target_owners"),
    *("service_context", "scheduling/scheduler", "scheduling/overwrite_backoff"),
    *("scheduling/retry_pause", "scheduling/tick_failures"),
    *("leadership/candidate", "leadership/guard", "leadership/record"),
    *(
        "gather/other_writers/other_scalers",
        "gather/gather_tick",
        "gather/pods/pod_ownership",
        "gather/pods/pods",
    ),
    *("gather/pods/pod_state", "gather/pods/container_faults"),
    *("gather/workloads/workload", "decide/external_scaling", "decide/scaling_conflicts"),
    *("sharing/competition", "sharing/pool", "sharing/pool_member"),
    *("act/act_tick", "act/child_writer", "act/deployment_writer", "act/drift"),
    *("act/field_ownership", "act/other_children", "act/scale_writer"),
)
"""Modules that protect the controller from wrong writes."""
FOLDERS = {
    SCALING: ("tests/scaling",),
    CONTROLLER: ("tests/controller", "tests/leadership"),
}
"""A bug that only other tests notice counts as not noticed."""


def targets(present: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Return the modules to mutate, of those present."""
    wanted = {CONTROLLER / f"{guard}.py" for guard in GUARDS}
    return sorted(
        path
        for path in present
        if path in wanted or (path.is_relative_to(SCALING) and path.stem != "__init__")
    )


def nearest_tests(module: PurePosixPath, present: Sequence[PurePosixPath]) -> list[tuple[str, ...]]:
    """Return the stages of tests: those named after the module, then the rest.

    `present` are all test files. Worked: for scaling/limits/flaps.py
    tests/scaling/limits/test_flaps.py, then tests/scaling.
    """
    everything = all_tests(module)
    named = tuple(
        str(path)
        for path in present
        if module.stem in path.stem and any(path.is_relative_to(folder) for folder in everything)
    )
    return [named, everything] if named else [everything]


def all_tests(module: PurePosixPath) -> tuple[str, ...]:
    """Return the folders of tests that should notice a bug of the module."""
    return FOLDERS[SCALING if module.is_relative_to(SCALING) else CONTROLLER]
