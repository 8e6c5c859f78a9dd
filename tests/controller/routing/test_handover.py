"""The handover between Service and Gateway mode: connections succeed at every moment."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api import InferenceService
from headroom.controller.routing import port_numbers
from headroom.controller.routing.handover import Next, ServiceTarget, step
from headroom.controller.routing.ready_pods import ReadyPodIndex
from headroom.resources import endpoint_slice
from headroom.resources.names import SERVICE_LABEL
from support.fakes_routing import replica_pod
from support.service_world import body, service

A, B = "10.0.0.1", "10.0.0.2"
TO_REPLICAS = Next(slice_first=None, service=ServiceTarget.REPLICAS, slice_after=())


@pytest.mark.parametrize(
    ("routed", "gateways", "standing", "accepts", "known", "expected"),
    [
        pytest.param(
            *(True, [A, B], (), False, False),
            Next(slice_first=(A,), service=ServiceTarget.GATEWAY, slice_after=None),
            id="on: the slice leads to a gateway before the Service lets go of the replicas",
        ),
        pytest.param(
            *(True, [B], (A,), False, False),
            Next(slice_first=(B,), service=ServiceTarget.GATEWAY, slice_after=None),
            id="its gateway is away: another one",
        ),
        pytest.param(
            *(True, [], (A,), False, False), TO_REPLICAS, id="none listens: to the replicas"
        ),
        pytest.param(
            *(True, [], (A,), True, False),
            Next(slice_first=None, service=ServiceTarget.REPLICAS, slice_after=None),
            id="its gateway is being removed: the slice stays until the Service has its replicas",
        ),
        pytest.param(*(True, [], (A,), True, True), TO_REPLICAS, id="and is emptied then"),
        pytest.param(
            *(False, [A], (A,), True, False),
            Next(slice_first=None, service=ServiceTarget.LEFT, slice_after=None),
            id="off: the slice stays until the Service has its replicas",
        ),
        pytest.param(
            *(False, [A], (A,), True, True),
            Next(slice_first=None, service=ServiceTarget.LEFT, slice_after=()),
            id="and is emptied then",
        ),
        pytest.param(
            *(False, [], (A,), False, False),
            Next(slice_first=None, service=ServiceTarget.LEFT, slice_after=()),
            id="off with the gateway away: at once",
        ),
    ],
)
def test_next_step(
    routed: bool,
    gateways: list[str],
    standing: tuple[str, ...],
    accepts: bool,
    known: bool,
    expected: Next,
) -> None:
    found = step(
        routed=routed,
        gateways=gateways,
        current=standing,
        accepts=accepts,
        replicas_known=known,
    )
    assert found == expected


def test_port_is_kept_across_restarts_and_never_shared() -> None:
    first = port_numbers.choose("uid-1", set())
    assert first is not None
    second = port_numbers.choose("uid-1", {first})
    assert second is not None
    assert second != first
    slices = [endpoint_slice.build(service(), ["10.0.0.9"], second)]
    known = {service().uid: body()}
    kept = port_numbers.Recorded(port=second, addresses=("10.0.0.9",), service_name="resnet50")
    assert port_numbers.read(slices, known) == {service().uid: kept}
    assert port_numbers.read([endpoint_slice.build(service(), [], second)], known) == {}
    everything = set(range(port_numbers.FIRST_PORT, port_numbers.FIRST_PORT + port_numbers.PORTS))
    assert port_numbers.choose("uid-1", everything) is None


def _claims(of: InferenceService, port: int) -> dict[str, Any]:
    return endpoint_slice.build(of, ["10.0.0.66"], port)


def _with(slice_: dict[str, Any], **reference: str) -> dict[str, Any]:
    slice_["metadata"]["ownerReferences"][0] |= reference
    return slice_


@pytest.mark.parametrize(
    "forged",
    [
        _claims(service(metadata__namespace="attacker"), 20_123),
        _claims(service(metadata__uid="nobody"), 20_123),
        _with(_claims(service(), 20_123), name="other"),
        _with(_claims(service(), 20_123), kind="Pod"),
        _with(_claims(service(), 20_123), apiVersion="v1"),
        _with(_claims(service(), 20_123), uid=""),
        {**_claims(service(), 20_123), "ports": [{"port": "20123"}]},
        {**_claims(service(), 20_123), "ports": [{"port": 80}]},
    ],
    ids=["namespace", "uid", "name", "kind", "group", "no uid", "text", "range"],
)
def test_slice_whose_owner_is_not_the_service_records_no_port(forged: dict[str, Any]) -> None:
    assert port_numbers.read([forged], {service().uid: body()}) == {}


def test_port_that_two_slices_claim_stays_with_the_service_it_was_chosen_for() -> None:
    victim = service(metadata__uid="victim")
    port = port_numbers.choose("victim", set())
    assert port is not None
    attackers = [
        (f"attacker-{number}", service(metadata__uid=f"attacker-{number}", metadata__namespace="a"))
        for number in range(20)
    ]
    known = {"victim": body(metadata__uid="victim")} | {
        uid: body(metadata__uid=uid, metadata__namespace="a") for uid, _ in attackers
    }
    slices = [*(_claims(one, port) for _, one in attackers), _claims(victim, port)]
    assert {uid: one.port for uid, one in port_numbers.read(slices, known).items()} == {
        "victim": port
    }


def test_pod_is_routed_to_from_readiness_to_termination() -> None:
    changes: list[str] = []
    index = ReadyPodIndex(lambda: changes.append("changed"))
    cold = replica_pod()
    cold["status"] = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "False"}]}
    index.replace([cold])
    assert index.ready("vision", "resnet50") == ()
    assert changes == ["changed"]  # that there is none is new
    changes.clear()
    index.observe("MODIFIED", replica_pod())
    index.observe("MODIFIED", replica_pod())
    assert [one.address for one in index.ready("vision", "resnet50")] == ["10.0.0.1"]
    assert changes == ["changed"]
    index.observe("MODIFIED", replica_pod(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert index.ready("vision", "resnet50") == ()
    assert changes == ["changed", "changed"]


@pytest.mark.parametrize(
    ("labels", "last"),
    [
        ({SERVICE_LABEL: "quarantine", "pod-template-hash": "abc"}, "quarantine"),
        ({"pod-template-hash": "abc"}, ""),
    ],
    ids=["isolated under another label", "without the label"],
)
def test_pod_that_is_relabelled_leaves_its_service_at_once(
    labels: dict[str, str], last: str
) -> None:
    changes: list[str] = []
    index = ReadyPodIndex(lambda: changes.append("changed"))
    index.replace([replica_pod()])
    changes.clear()
    index.observe("MODIFIED", replica_pod(labels=labels))
    assert index.ready("vision", "resnet50") == ()
    assert changes == ["changed"]
    index.observe("DELETED", replica_pod(labels=labels))
    assert index.ready("vision", "resnet50") == index.ready("vision", last) == ()


def test_pod_that_is_relabelled_back_is_routed_to_again() -> None:
    index = ReadyPodIndex(lambda: None)
    index.replace([replica_pod()])
    index.observe("MODIFIED", replica_pod(labels={"pod-template-hash": "abc"}))
    index.observe("MODIFIED", replica_pod())
    assert [one.uid for one in index.ready("vision", "resnet50")] == ["p1"]
    assert index.ready("vision") == ()


def test_pod_with_the_label_but_another_owner_is_not_routed_to() -> None:
    index = ReadyPodIndex(lambda: None)
    index.replace([replica_pod(ownerReferences=[])])
    assert index.ready("vision", "resnet50") == ()
