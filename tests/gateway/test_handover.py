"""The handover between Service and Gateway mode: connections succeed at every moment."""

from __future__ import annotations

import pytest

from headroom.controller.routing import port_numbers
from headroom.controller.routing.handover import Next, ServiceTarget, step
from headroom.controller.routing.ready_pods import ReadyPodIndex
from headroom.resources import endpoint_slice
from headroom.resources.names import SERVICE_LABEL
from service_world import service

A, B = "10.0.0.1", "10.0.0.2"
TO_REPLICAS = Next(slice_first=None, service=ServiceTarget.REPLICAS, slice_after=())


@pytest.mark.parametrize(
    ("routed", "gateways", "standing", "known", "expected"),
    [
        pytest.param(
            *(True, [A, B], (), False),
            Next(slice_first=(A,), service=ServiceTarget.GATEWAY, slice_after=None),
            id="on: the slice leads to a gateway before the Service lets go of the replicas",
        ),
        pytest.param(
            *(True, [B], (A,), False),
            Next(slice_first=(B,), service=ServiceTarget.GATEWAY, slice_after=None),
            id="its gateway is away: another one",
        ),
        pytest.param(*(True, [], (A,), False), TO_REPLICAS, id="none listens: to the replicas"),
        pytest.param(
            *(False, [A], (A,), False),
            Next(slice_first=None, service=ServiceTarget.LEFT, slice_after=None),
            id="off: the slice stays until the Service has its replicas",
        ),
        pytest.param(
            *(False, [A], (A,), True),
            Next(slice_first=None, service=ServiceTarget.LEFT, slice_after=()),
            id="and is emptied then",
        ),
        pytest.param(
            *(False, [], (A,), False),
            Next(slice_first=None, service=ServiceTarget.LEFT, slice_after=()),
            id="off with the gateway away: at once",
        ),
    ],
)
def test_next_step(
    routed: bool, gateways: list[str], standing: tuple[str, ...], known: bool, expected: Next
) -> None:
    found = step(routed=routed, gateways=gateways, current=standing, replicas_known=known)
    assert found == expected


def test_port_is_kept_across_restarts_and_never_shared() -> None:
    first = port_numbers.choose("uid-1", set())
    assert first is not None
    second = port_numbers.choose("uid-1", {first})
    assert second is not None
    assert second != first
    slices = [endpoint_slice.build(service(), ["10.0.0.9"], second)]
    uid = slices[0]["metadata"]["ownerReferences"][0]["uid"]
    kept = port_numbers.Recorded(port=second, addresses=("10.0.0.9",), service_name="resnet50")
    assert port_numbers.read(slices) == {uid: kept}
    assert port_numbers.read([endpoint_slice.build(service(), [], second)]) == {}
    everything = set(range(port_numbers.FIRST_PORT, port_numbers.FIRST_PORT + port_numbers.PORTS))
    assert port_numbers.choose("uid-1", everything) is None


def pod(**changes: object) -> dict[str, object]:
    metadata = {
        "uid": "p1",
        "name": "resnet50-abc-1",
        "namespace": "vision",
        "labels": {SERVICE_LABEL: "resnet50", "pod-template-hash": "abc"},
        "ownerReferences": [{"controller": True, "kind": "ReplicaSet", "name": "resnet50-abc"}],
    }
    status = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": metadata | changes, "status": status}


def test_pod_is_routed_to_from_readiness_to_termination() -> None:
    changes: list[str] = []
    book = ReadyPodIndex(lambda: changes.append("changed"))
    cold = pod()
    cold["status"] = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "False"}]}
    book.replace([cold])
    assert book.ready("vision", "resnet50") == ()
    assert changes == ["changed"]  # that there is none is news
    changes.clear()
    book.observe("MODIFIED", pod())
    book.observe("MODIFIED", pod())
    assert [one.address for one in book.ready("vision", "resnet50")] == ["10.0.0.1"]
    assert changes == ["changed"]
    book.observe("MODIFIED", pod(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert book.ready("vision", "resnet50") == ()
    assert changes == ["changed", "changed"]


def test_pod_with_the_label_but_another_owner_is_not_routed_to() -> None:
    book = ReadyPodIndex(lambda: None)
    book.replace([pod(ownerReferences=[])])
    assert book.ready("vision", "resnet50") == ()
