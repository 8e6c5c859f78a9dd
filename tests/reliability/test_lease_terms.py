"""Writes of leaders: which come too late, by the order in which the API server took them."""

from __future__ import annotations

import json

import pytest

from reliability.fault_proxy.calls import Call, Verb
from reliability.fault_proxy.exchanges import Exchange
from reliability.leaders.lease_terms import Write, fallen, too_late, writes_of

STATUS = "inferenceservices/status"


def write(version: int, term: int, target: str = "deployments a/x") -> Write:
    return Write(target=target, version=version, term=term, words=f"patch no. {version}")


@pytest.mark.parametrize(
    ("writes", "late"),
    [
        pytest.param([write(1, 0), write(2, 0), write(3, 1)], 0, id="one after the other"),
        pytest.param([write(1, 0), write(3, 1), write(2, 0)], 0, id="in another order"),
        pytest.param([write(1, 0), write(2, 1), write(3, 0)], 1, id="the first writes again"),
        pytest.param([write(1, 1), write(2, 0), write(3, 0)], 2, id="and again"),
        pytest.param([write(1, 1), write(2, 0, "deployments a/y")], 0, id="another object"),
        pytest.param([write(1, 0), write(2, 1), write(3, 2)], 0, id="the first comes back"),
        pytest.param([write(1, 1), write(1, 0)], 0, id="the later one changed nothing"),
    ],
)
def test_write_after_the_end_of_a_lease_term_is_too_late(writes: list[Write], late: int) -> None:
    assert len(too_late(writes)) == late


def exchange(
    at_s: float, resource: str, *, code: int = 200, version: int = 0, **sent: object
) -> Exchange:
    call = Call(verb=Verb.PATCH, resource=resource, namespace="a", name="x")
    body = json.dumps({"metadata": {"name": "x"}, **sent}).encode()
    return Exchange(at_s=at_s, call=call, code=code, sent=body, version=version)


def lease(at_s: float, holder: str, transitions: int) -> Exchange:
    spec = {"holderIdentity": holder, "leaseTransitions": transitions}
    return exchange(at_s, "leases", spec=spec)


def test_write_belongs_to_the_lease_term_in_which_it_was_sent() -> None:
    exchanges = [
        lease(0.0, "one_123", 4),
        exchange(1.0, STATUS, version=10),
        exchange(2.0, STATUS, code=409, version=11),
        exchange(3.0, STATUS, version=30),  # on its way for long, and taken late
        lease(9.0, "", 4),
        lease(20.0, "one_123", 6),
        exchange(21.0, "deployments/scale", version=31),
        exchange(22.0, "events", version=32),
    ]
    found = writes_of(exchanges, "one")
    assert [(one.target, one.version, one.term) for one in found] == [
        ("inferenceservices a/x", 10, 4),
        ("inferenceservices a/x", 30, 4),
        ("deployments a/x", 31, 6),
    ]


def test_every_fall_of_replicas_is_reported() -> None:
    assert fallen({"up": [1, 2, 2, 5], "down": [1, 3, 2, 3]}) == ["down: [1, 3, 2, 3]"]
