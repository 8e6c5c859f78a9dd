"""Accelerators that one replica holds, whatever its spec claims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.resources import accelerators, deployment, rolling_update
from support.service_world import service

GPU = "nvidia.com/gpu"


def _container(name: str = "one", *, always: bool = False, **limits: Any) -> dict[str, Any]:
    named = {key.replace("__", "/").replace("_", "."): value for key, value in limits.items()}
    container = {"name": name, "resources": {"limits": named}}
    return container | ({"restartPolicy": "Always"} if always else {})


def _gpus(count: Any, name: str = "one", *, always: bool = False) -> dict[str, Any]:
    return _container(name, always=always, nvidia_com__gpu=count)


def _held(**pod: Any) -> accelerators.Accelerators:
    return accelerators.of_template({"spec": pod})


def test_accelerators_are_the_sum_of_all_containers() -> None:
    assert _held(containers=[_gpus(2), _gpus("1", "two")]) == {GPU: 3}


def test_init_containers_count_with_the_sidecars_before_them() -> None:
    pod = {
        "initContainers": [_gpus(1, "sidecar", always=True), _gpus(8, "init")],
        "containers": [_gpus(2), _gpus(1, "two")],
    }
    assert _held(**pod) == {GPU: 9}
    pod["containers"] = [_gpus(20)]
    assert _held(**pod) == {GPU: 21}


def test_every_extended_resource_counts_and_native_ones_do_not() -> None:
    limits = {
        "cpu": "8",
        "memory": "1Gi",
        "hugepages-2Mi": "1Gi",
        "attachable-volumes-x": 3,
        "node.kubernetes.io/thing": 2,
        "kubernetes.io/batch": 1,
        "amd.com/gpu": 2,
        "nvidia.com/mig-1g.5gb": 7,
    }
    held = _held(containers=[{"name": "a", "resources": {"limits": limits}}])
    assert held == {"amd.com/gpu": 2, "nvidia.com/mig-1g.5gb": 7}


def test_requests_count_where_limits_are_smaller() -> None:
    container = {"name": "a", "resources": {"limits": {GPU: 1}, "requests": {GPU: "4"}}}
    assert _held(containers=[container]) == {GPU: 4}


def test_resource_claims_count_as_one_device_each() -> None:
    held = _held(containers=[], resourceClaims=[{"name": "a"}, {"name": "b"}])
    assert accelerators.counted(held) == 2


@pytest.mark.parametrize(
    ("quantity", "count"),
    [
        (8, 8),
        ("8", 8),
        ("1k", 1000),
        ("8000m", 8),
        ("1e1", 10),
        ("2Ki", 2048),
        ("0.5", 1),
        ("+3", 3),
        (".8e1", 8),
        ("1e999999999", accelerators.MOST),
        ("9" * 18, accelerators.MOST),
        ("-3", 0),
        ("many", 0),
        (None, 0),
        (True, 0),
        ({}, 0),
    ],
)
def test_devices_reads_the_quantities_of_kubernetes(quantity: object, count: int) -> None:
    assert accelerators.devices(quantity) == count


def test_template_counts_although_the_spec_claims_none() -> None:
    overlay = {"spec": {"containers": [{"name": "server", "resources": {"limits": {GPU: 8}}}]}}
    made = service(spec__accelerator__count=0, spec__runtime__podTemplate=overlay)
    template = deployment.build(made)["spec"]["template"]
    assert accelerators.per_replica(made, template) == {GPU: 8}
    assert "requests 8 nvidia.com/gpu per replica" in accelerators.difference(made, {GPU: 8})


def test_resource_of_another_name_counts_in_addition_to_the_claimed_one() -> None:
    made = service(
        spec__accelerator={"resource": "example.com/none", "count": 0},
        spec__runtime__resources={"limits": {GPU: "8"}},
    )
    template = deployment.build(made)["spec"]["template"]
    assert accelerators.counted(accelerators.per_replica(made, template)) == 8
    assert accelerators.of_stored(made.spec.manifest()) == {GPU: 8}


@pytest.mark.parametrize("count", [0, 2])
def test_claim_as_requested_differs_in_nothing(count: int) -> None:
    made = service(spec__accelerator__count=count)
    template = deployment.build(made)["spec"]["template"]
    assert accelerators.difference(made, accelerators.per_replica(made, template)) == ""


def test_rollout_is_left_to_the_operator_where_only_the_template_requests_accelerators() -> None:
    overlay = {"spec": {"containers": [{"name": "sidecar", "resources": {"limits": {GPU: 1}}}]}}
    made = service(spec__accelerator__count=0, spec__runtime__podTemplate=overlay)
    assert rolling_update.is_chosen_here(made, deployment.build(made))


def test_network_devices_are_not_counted() -> None:
    held = {GPU: 8, "vpc.amazonaws.com/efa": 4, "rdma/hca": 1}
    assert accelerators.counted(held) == 8
    assert accelerators.counted(held, ("nothing/*",)) == 13


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(JSON, JSON, JSON)
def test_stored_specs_of_any_shape_are_counted(one: Any, two: Any, three: Any) -> None:
    spec = {
        "accelerator": one,
        "runtime": {"resources": two, "podTemplate": {"spec": {"containers": three}}},
    }
    assert accelerators.counted(accelerators.of_stored(spec)) >= 0
