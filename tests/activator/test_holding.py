"""Who is held, who is refused with which time to come back, and whose turn it is."""

from __future__ import annotations

import pytest

from activator_world import KEY, served
from headroom.activator.holding import Bounds, Holding, Refusal, Ticket, Why
from headroom.gateway import Endpoint
from headroom.gateway.activation import Served

A, B = Endpoint("10.0.0.1", 8000), Endpoint("10.0.0.2", 8000)


def holding(*, bounds: Bounds | None = None, **changes: object) -> Holding:
    made = Holding(bounds or Bounds())
    made.serve([of(**changes)])
    return made


def of(*replicas: Endpoint, **changes: object) -> Served:
    return served(20001, *replicas, **changes)


def admitted(held: Holding, now_s: float, timeout_s: float | None = None) -> Ticket:
    ticket = held.admit(KEY, now_s, timeout_s)
    assert isinstance(ticket, Ticket)
    held.complete(ticket)
    return ticket


@pytest.mark.parametrize(
    ("cold_start_s", "knocked_s", "now_s", "timeout_s", "again_s"),
    [
        pytest.param(12.0, 0.0, 0.0, 5.0, 12, id="a start takes longer than the client waits"),
        pytest.param(12.0, 0.0, 4.5, 5.0, 8, id="what is left of it counts, rounded up"),
        pytest.param(12.0, 0.0, 8.0, 5.0, None, id="warm before the deadline: held"),
        pytest.param(12.0, 0.0, 0.0, None, None, id="no deadline: the service's, five minutes"),
        pytest.param(400.0, 0.0, 0.0, None, 400, id="longer than the service's own"),
        pytest.param(None, 0.0, 0.0, 1.0, None, id="never measured: held, since nobody knows"),
    ],
)
def test_a_request_is_held_where_a_replica_can_be_warm_in_time(
    cold_start_s: float | None,
    knocked_s: float,
    now_s: float,
    timeout_s: float | None,
    again_s: int | None,
) -> None:
    held = holding(cold_start_s=cold_start_s)
    held.admit(KEY, knocked_s, None)
    outcome = held.admit(KEY, now_s, timeout_s)
    if again_s is None:
        assert isinstance(outcome, Ticket)
    else:
        assert isinstance(outcome, Refusal)
        assert (outcome.status, outcome.why) == (503, Why.TOO_LATE)
        assert outcome.retry_after_s == again_s


def test_bounds_on_count_and_bytes_refuse_with_the_time_of_the_start() -> None:
    bounds = Bounds(requests=3, requests_per_service=2, body_bytes=1000)
    held = Holding(bounds)
    held.serve([of(cold_start_s=9.0), of(key="vision/bert")])
    first, second = admitted(held, 0.0), admitted(held, 0.0)
    third = held.admit(KEY, 1.0, None)
    assert isinstance(third, Refusal)
    assert (third.status, third.why, third.retry_after_s) == (429, Why.TOO_MANY, 8)
    assert isinstance(held.admit("vision/bert", 1.0, None), Ticket)
    assert isinstance(held.admit("vision/bert", 1.0, None), Refusal)  # three in all
    assert held.grow(first, 600, 1.0) is None
    large = held.grow(second, 600, 1.0)
    assert large is not None
    assert (large.status, large.retry_after_s) == (429, 8)
    held.done(first)
    assert held.grow(second, 600, 1.0) is None
    assert (held.requests, held.body_bytes) == (2, 600)


def test_a_body_beyond_the_services_bound_is_too_large() -> None:
    held = holding(max_body_bytes=1000)
    refusal = held.grow(admitted(held, 0.0), 100_000, 0.0)
    assert refusal is not None
    assert (refusal.status, refusal.why, refusal.retry_after_s) == (413, Why.TOO_LARGE, None)


def test_whoever_waits_to_his_deadline_is_told_before_it_when_to_come_back() -> None:
    """Started at 0 and measured at 10 s; at 4.75 of a deadline of 5 s 6 s are left, rounded up."""
    held = holding(cold_start_s=None)
    ticket = admitted(held, 0.0, 5.0)
    held.serve([of(cold_start_s=10.0)])
    assert held.turn(4.7).refused == ()
    ((refused, why),) = held.turn(4.75).refused
    assert refused is ticket
    assert (why.status, why.why, why.retry_after_s) == (503, Why.EXPIRED, 6)


def test_the_longest_waiting_goes_first_to_the_least_loaded_within_what_each_may_have() -> None:
    held = holding(in_flight=2)
    tickets = [admitted(held, float(number)) for number in range(6)]
    assert held.turn(6.0).given == ()
    held.serve([of(A, B, in_flight=2)])
    given = held.turn(7.0).given
    assert [ticket for ticket, _ in given] == tickets[:4]
    assert [host for _, host in given] == [A, B, A, B]
    held.answered(tickets[1])
    held.done(tickets[1])
    assert held.turn(8.0).given == ((tickets[4], B),)
    assert held.held() == {KEY: 5}


def test_a_replica_that_refuses_gets_fewer_until_it_answers() -> None:
    """Eight at once are allowed; it takes three of them, and one more with each answer."""
    held = holding(in_flight=8)
    tickets = [admitted(held, 0.0) for _ in range(10)]
    held.serve([of(A, in_flight=8)])
    assert len(held.turn(1.0).given) == 8
    for ticket in tickets[3:8]:
        held.put_back(ticket, 1.0)
    assert held.turn(1.5).given == ()  # three in flight, three allowed
    held.answered(tickets[0])
    held.done(tickets[0])
    assert [ticket for ticket, _ in held.turn(2.0).given] == tickets[3:5]


def test_what_a_replica_has_refused_goes_to_another_where_there_is_one() -> None:
    """A, which cannot be reached, has the fewest in flight, and would be chosen again and again."""
    held = holding(in_flight=8)
    tickets = [admitted(held, 0.0) for _ in range(3)]
    held.serve([of(A, in_flight=8)])
    assert len(held.turn(1.0).given) == 3
    for ticket in tickets:
        held.put_back(ticket, 1.0)
    held.serve([of(A, B, in_flight=8)])
    assert [host for _, host in held.turn(2.0).given] == [B, B, B]
    held.put_back(tickets[0], 2.0)
    assert held.turn(3.0).given == ((tickets[0], A),)  # both have: the one with fewer in flight


def test_a_request_is_given_out_once_its_body_is_there() -> None:
    held = holding()
    reading = held.admit(KEY, 0.0, None)
    assert isinstance(reading, Ticket)
    held.serve([of(A)])
    other = admitted(held, 1.0)
    assert held.turn(1.0).given == ((other, A),)
    held.complete(reading)
    assert held.turn(1.1).given == ((reading, A),)


def test_a_service_that_is_gone_and_an_end_refuse_whoever_waits() -> None:
    held = holding()
    waits = admitted(held, 0.0)
    held.serve([])
    assert [ticket for ticket, _ in held.turn(0.1).refused] == [waits]
    held.done(waits)
    held.serve([of(cold_start_s=3.5)])
    last = admitted(held, 1.0)
    held.leave()
    ((ticket, refusal),) = held.turn(2.0).refused
    assert ticket is last
    assert (refusal.why, refusal.retry_after_s) == (Why.LEAVING, 2)
    late = held.admit(KEY, 2.0, None)
    assert isinstance(late, Refusal)
    assert late.status == 503
