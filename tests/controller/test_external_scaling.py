"""External mode: spec.replicas is followed as far and as fast as bounds and rates allow."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.decide.external_scaling import next_replicas
from support.service_world import service

NOW_S = 1000.0
UP = {"scaleUp": {"rate": {"period": "1m", "replicas": 2}}}
DOUBLE = {"scaleUp": {"rate": {"period": "1m", "percent": 100}}}
DOWN = {"scaleDown": {"rate": {"period": "1m", "percent": 50}}}


@pytest.mark.parametrize(
    ("requested", "current", "scaling", "changes", "asked"),
    [
        (7, 3, {}, [], 7),
        (1, 8, {}, [], 1),
        (3, 3, UP | DOWN, [], 3),
        (9, 3, UP, [], 5),
        (9, 5, UP, [(900.0, 3), (970.0, 5)], 5),
        (9, 5, UP, [(900.0, 3), (930.0, 5)], 7),
        (9, 4, UP, [(900.0, 3), (970.0, 4)], 5),
        (2, 8, DOWN, [], 4),
        (2, 6, DOWN, [(900.0, 8), (990.0, 6)], 4),
        (2, 8, UP, [], 2),
        (5, 0, DOUBLE, [], 1),
        (5, 1, DOUBLE, [(900.0, 0), (970.0, 1)], 1),
        (5, 1, DOUBLE, [(900.0, 0), (930.0, 1)], 2),
    ],
    ids=[
        "up at once",
        "down at once",
        "there",
        "a step up",
        "the step is spent",
        "a period later",
        "half spent",
        "a step down",
        "half of the step down is spent",
        "a rate of the other way",
        "a percentage of none",
        "that step is spent",
        "a period after it",
    ],
)
def test_external_replicas_follow_the_rate(
    requested: int,
    current: int,
    scaling: dict[str, Any],
    changes: list[tuple[float, int]],
    asked: int,
) -> None:
    found = service(
        spec__replicas=requested,
        spec__routing={"mode": "Gateway"},
        spec__scaling={"mode": "External", "minReplicas": 0, "maxReplicas": 10, **scaling},
    )
    assert next_replicas(found, current, changes, NOW_S, min_replicas=0) == asked
