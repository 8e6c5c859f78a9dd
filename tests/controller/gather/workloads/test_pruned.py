"""A workload is as large as its tenant wants; the kept part of it is bounded."""

from __future__ import annotations

from typing import Any

from headroom.controller.act.drift import Applied
from headroom.controller.gather.workloads.pruned import MOST_VALUES, pruned


def deployment(variables: int) -> dict[str, Any]:
    container = {"name": "server", "env": [{"name": f"v{at}"} for at in range(variables)]}
    return {
        "apiVersion": "apps/v1",
        "metadata": {"name": "d", "resourceVersion": "1", "uid": "u"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        "status": {"replicas": 2},
    }


def values(part: Any) -> int:
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return 1 + sum(map(values, inner))


def test_usual_workload_stays_the_same() -> None:
    assert pruned(deployment(64)) == deployment(64)


def test_large_workload_keeps_what_comes_first_and_every_part() -> None:
    found = pruned(deployment(70_000))
    assert values(found["spec"]) <= MOST_VALUES + 2
    assert (found["spec"]["replicas"], found["status"]) == (2, {"replicas": 2})
    assert found["metadata"] == deployment(0)["metadata"]
    assert pruned(found) == found


def test_large_workload_that_was_applied_has_not_drifted_since() -> None:
    """Else its pods would be replaced each time: answers to writes are whole."""
    manifest, live = deployment(2) | {"metadata": {"name": "d"}}, deployment(70_000)
    applied = Applied.of(manifest, live)
    later = pruned(live) | {"metadata": live["metadata"] | {"resourceVersion": "2"}}
    assert applied.matches(manifest, later)
    later["spec"]["template"]["spec"]["containers"][0]["name"] = "another"
    assert not applied.matches(manifest, later)
