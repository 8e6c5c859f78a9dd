"""A service's route: the effect of `spec.routing`."""

from __future__ import annotations

import math

import pytest

from headroom.api.service_status.status import Status
from headroom.controller.routing import route_builder
from headroom.controller.routing.gateway_inputs import GatewayInputs
from headroom.controller.routing.ready_pods import ready_pod
from headroom.gateway import Endpoint
from headroom.gateway.values import Hedge, RequestClass, TenantLimit
from headroom.scaling.values.observation import CostModel
from support.fakes_routing import replica_pod
from support.service_world import service

CANARY = {"service": "canary", "percent": 10}
TARGET = {"spec__targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "own"}}


def test_request_settings_reach_the_route() -> None:
    routing = {
        "mode": "Gateway",
        "grpcPort": 9000,
        "hedging": {"after": "300ms"},
        "classes": [{"name": "urgent", "priority": 0, "deadline": "1500ms"}, {"name": "batch"}],
        "tenants": {"requestsPerSecond": 50},
    }
    one = route_builder.route(service(spec__routing=routing), 20001)
    assert one.grpc_port == 9000
    assert one.hedge == Hedge(after_s=0.3, budget_percent=5.0)
    assert one.classes == (
        RequestClass(name="urgent", priority=0, deadline_s=1.5),
        RequestClass(name="batch", priority=None, deadline_s=None),
    )
    assert one.tenants == TenantLimit(header="x-tenant", rate_rps=50, burst=50)
    shares = {"mode": "Gateway", "tenants": {"header": "x-key", "inFlightPercent": 25}}
    one = route_builder.route(service(spec__routing=shares), 20001)
    assert one.tenants == TenantLimit(header="x-key", in_flight_percent=25)


def test_traffic_share_requires_a_routed_service() -> None:
    routing = {
        "mode": "Gateway",
        "traffic": [CANARY, {"service": "gone", "percent": 20}, {"service": "idle", "percent": 0}],
        "models": [{"model": "bert", "service": "bert"}, {"model": "t5", "service": "gone"}],
    }
    there = {"vision/resnet50", "vision/canary", "vision/bert", "vision/idle", "other/gone"}
    one = route_builder.route(service(spec__routing=routing), 20001, there)
    assert one.split == (("vision/canary", 10),)
    assert one.models == (("bert", "vision/bert"),)


def test_route_without_request_settings_is_plain() -> None:
    one = route_builder.route(service(spec__routing={"mode": "Gateway"}), 20001, {"vision/canary"})
    assert (one.hedge, one.classes, one.tenants, one.split, one.models) == (None, (), None, (), ())


@pytest.mark.parametrize(
    ("declared", "target", "port"), [(8000, {}, 8000), (None, {}, 9000), (8000, TARGET, 9000)]
)
def test_pod_of_an_earlier_template_is_reached_at_its_own_port(
    declared: int | None, target: dict[str, object], port: int
) -> None:
    """runtime.port is 9000 now; what the pods of a target declare is their owner's."""
    named = [{"name": "metrics", "containerPort": 7000}]
    named += [{"name": "http", "containerPort": declared}] if declared else []
    found = ready_pod(
        {
            "metadata": {"uid": "p1", "name": "p1"},
            "spec": {
                "containers": [
                    {"name": "proxy", "ports": [{"name": "http", "containerPort": 15000}]},
                    {"name": "server", "ports": named},
                ]
            },
            "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
        }
    )
    assert found is not None
    runtime = {"port": 9000} if target else {"port": 9000, "image": "registry.example/server:1"}
    edited = service(spec__runtime=runtime, spec__routing={"mode": "Gateway"}, **target)
    assert route_builder.endpoints(edited, (found,)) == [Endpoint("10.0.0.1", port)]


def test_busy_bound_is_twice_the_batch_times_slots() -> None:
    """Batches of 4 by 3 replicas: 24, whatever the target; at least one replica's worth."""
    cost = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4)
    assert route_builder.busy(cost, 3) == 24
    assert route_builder.busy(cost, 0) == 8
    assert route_builder.busy(None, 3) is None


@pytest.mark.parametrize(("instances", "in_flight", "busy"), [(1, 12, 8), (4, 48, 32)])
def test_in_flight_bound_with_several_instances_counts_all_of_them(
    instances: int, in_flight: int, busy: int
) -> None:
    """Triton, batches of 4 in 0.39 s, target 1.5 s: 3 batches of each instance end in time."""
    runtime = {"image": "triton:26", "profile": "triton", "maxBatchSize": 4, "instances": instances}
    triton = service(
        spec__runtime=runtime,
        spec__routing={"mode": "Gateway"},
        spec__slo={"latency": {"target": "1500ms"}},
    )
    model = {"fixedCost": "150ms", "perItemCost": "60ms", "maxBatch": 4}
    shown = {"model": model | {"slots": triton.spec.runtime.instances}}
    learned = route_builder.Learned.of(Status.read(shown))
    assert route_builder.in_flight(triton, learned, 1) == in_flight
    assert route_builder.busy(learned.cost, 1) == busy
    assert route_builder.served(triton, 20001, learned, ()).in_flight == in_flight


@pytest.mark.parametrize(("most", "per_replica"), [(None, 41), (64, 64)])
def test_generating_service_is_bounded_by_the_sequences_that_are_in_time(
    most: int | None, per_replica: int
) -> None:
    routing = {"mode": "Gateway"} | ({} if most is None else {"maxInFlight": most})
    llama = service(spec__routing=routing)
    shown = {"generation": {"sizedBy": "Model", "maxInFlightPerReplica": 41}}
    learned = route_builder.Learned.of(Status.read(shown))
    assert route_builder.in_flight(llama, learned, 3) == 3 * per_replica


@pytest.mark.parametrize(
    "cost",
    [
        pytest.param(CostModel(fixed_s=1e-320, per_item_s=0.0, max_batch=4), id="denormal"),
        pytest.param(CostModel(fixed_s=0.0, per_item_s=0.0, max_batch=4), id="zero"),
        pytest.param(CostModel(fixed_s=1e-9, per_item_s=0.0, max_batch=1 << 20), id="tiny"),
        pytest.param(CostModel(fixed_s=1.0, per_item_s=0.0, max_batch=1 << 40), id="large"),
    ],
)
def test_absurd_cost_that_pods_report_gives_a_bound_that_envoy_can_count(cost: CostModel) -> None:
    """OverflowError ended the routing of all services, again after each restart."""
    learned = route_builder.Learned(cost=cost)
    gateway = service(spec__routing={"mode": "Gateway"})
    found = route_builder.in_flight(gateway, learned, 1000)
    assert found is not None
    assert 1000 <= found < 1 << 32
    assert (route_builder.busy(cost, 1000) or 0) < 1 << 32


def test_service_whose_inputs_cannot_be_built_costs_no_other_its_route() -> None:
    broken = route_builder.Learned(cost=CostModel(fixed_s=math.nan, per_item_s=0.0, max_batch=4))
    usual = route_builder.Learned(cost=CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4))
    routing = {"mode": "Gateway"}
    hostile = service(spec__routing=routing, metadata__name="hostile")
    neighbour = service(spec__routing=routing, metadata__name="neighbour")
    pod = ready_pod(replica_pod())
    assert pod is not None
    inputs = GatewayInputs()
    for port, one, learned in ((20001, hostile, broken), (20002, neighbour, usual)):
        inputs.add(one, port, learned, (pod,), others=(), activators=(), held=3)
    key = f"{neighbour.namespace}/neighbour"
    assert [one.key for one in inputs.routes] == [key]
    assert (inputs.bounds, inputs.busy) == ({key: 11}, {key: 8})
    assert list(inputs.failed) == [f"{hostile.namespace}/hostile"]


def test_cold_start_without_an_end_is_not_known() -> None:
    shown = {"coldStart": {"p90": "unbounded"}}
    assert route_builder.Learned.of(Status.read(shown)) == route_builder.Learned()
