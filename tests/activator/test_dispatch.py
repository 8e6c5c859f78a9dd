"""Dispatch of held requests: to which replica, within which limit, and after a removal."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from activator.buffers import A, B, admitted, make_buffer, of
from headroom.activator.held_request import HeldRequest, Refusal, RefusalReason
from headroom.activator.request_buffer import RequestBuffer
from support.fakes_activator import KEY


def test_dispatch_sends_the_oldest_request_to_the_least_loaded_replica_within_its_limit() -> None:
    buffer = make_buffer(in_flight=2)
    requests = [admitted(buffer, float(number)) for number in range(6)]
    assert buffer.dispatch(6.0).given == ()
    buffer.serve([of(A, B, in_flight=2)])
    given = buffer.dispatch(7.0).given
    assert [request for request, _ in given] == requests[:4]
    assert [host for _, host in given] == [A, B, A, B]
    buffer.answered(requests[1])
    buffer.done(requests[1])
    assert buffer.dispatch(8.0).given == ((requests[4], B),)
    assert buffer.held() == {KEY: 5}


def test_replica_that_refuses_gets_a_lower_limit_until_it_answers() -> None:
    """The limit is eight; the replica accepts three, and one more with each answer."""
    buffer = make_buffer(in_flight=8)
    requests = [admitted(buffer, 0.0) for _ in range(10)]
    buffer.serve([of(A, in_flight=8)])
    assert len(buffer.dispatch(1.0).given) == 8
    for request in requests[3:8]:
        buffer.put_back(request, 1.0)
    assert buffer.dispatch(1.5).given == ()  # three in flight, three allowed
    buffer.answered(requests[0])
    buffer.done(requests[0])
    assert [request for request, _ in buffer.dispatch(2.0).given] == requests[3:5]


@pytest.mark.parametrize("answer_s", [0.0005, 0.002])
def test_replica_that_refuses_everything_is_tried_ten_times_a_second(answer_s: float) -> None:
    """2048 requests wait; each refusal would let the next one try at once, 2000 times a second."""
    buffer = make_buffer(in_flight=64)
    for _ in range(2048):
        admitted(buffer, 0.0)
    buffer.serve([of(A, in_flight=64)])
    tries, now_s = 0, 0.0
    while now_s < 10.0:
        given = buffer.dispatch(now_s).given
        tries += len(given)
        now_s += answer_s if given else 0.05
        for held, _ in given:
            buffer.put_back(held, now_s)
    assert 64 + 50 <= tries <= 64 + 100


def test_replica_that_answers_gets_the_next_request_at_once() -> None:
    buffer = make_buffer(in_flight=2)
    requests = [admitted(buffer, 0.0) for _ in range(4)]
    buffer.serve([of(A, in_flight=2)])
    buffer.dispatch(1.0)
    buffer.put_back(requests[1], 1.0)
    assert buffer.dispatch(1.05).given == ()
    buffer.answered(requests[0])
    buffer.done(requests[0])
    assert buffer.dispatch(1.05).given == ((requests[2], A), (requests[3], A))


def test_refused_request_prefers_another_replica() -> None:
    """Unreachable A has the fewest in flight and would be selected repeatedly."""
    buffer = make_buffer(in_flight=8)
    requests = [admitted(buffer, 0.0) for _ in range(3)]
    buffer.serve([of(A, in_flight=8)])
    assert len(buffer.dispatch(1.0).given) == 3
    for request in requests:
        buffer.put_back(request, 1.0)
    buffer.serve([of(A, B, in_flight=8)])
    assert [host for _, host in buffer.dispatch(2.0).given] == [B, B, B]
    buffer.put_back(requests[0], 2.0)
    assert buffer.dispatch(3.0).given == (
        (requests[0], A),
    )  # both have: the one with fewer in flight


def test_request_is_dispatched_only_with_its_whole_body() -> None:
    buffer = make_buffer()
    reading = buffer.admit(KEY, 0.0, None)
    assert isinstance(reading, HeldRequest)
    buffer.serve([of(A)])
    other = admitted(buffer, 1.0)
    assert buffer.dispatch(1.0).given == ((other, A),)
    buffer.complete(reading)
    assert buffer.dispatch(1.1).given == ((reading, A),)


def test_removed_service_and_shutdown_refuse_waiting_requests() -> None:
    buffer = make_buffer()
    waits = admitted(buffer, 0.0)
    buffer.serve([])
    ((request, refusal),) = buffer.dispatch(0.1).refused
    assert request is waits
    assert refusal.why is RefusalReason.UNKNOWN
    buffer.done(waits)
    buffer.serve([of(cold_start_s=3.5)])
    last = admitted(buffer, 1.0)
    buffer.leave()
    ((request, refusal),) = buffer.dispatch(2.0).refused
    assert request is last
    assert (refusal.why, refusal.retry_after_s) == (RefusalReason.LEAVING, 2)
    late = buffer.admit(KEY, 2.0, None)
    assert isinstance(late, Refusal)
    assert late.status == 503


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda _: None, RefusalReason.EXPIRED),
        (lambda buffer: buffer.leave(), RefusalReason.LEAVING),
        (lambda buffer: (buffer.serve([]), buffer.dispatch(1.0), buffer.serve([])), "Unknown"),
    ],
    ids=["expired", "shutdown", "removed"],
)
def test_request_that_is_refused_while_its_body_arrives_learns_it_with_the_next_bytes(
    end: Callable[[RequestBuffer], object], why: str
) -> None:
    buffer = make_buffer()
    reading = buffer.admit(KEY, 0.0, 1.0)
    assert isinstance(reading, HeldRequest)
    assert buffer.grow(reading, 10, 0.5) is None
    end(buffer)
    buffer.dispatch(1.0)
    refusal = buffer.grow(reading, 10, 1.1)
    assert refusal is not None
    assert (refusal.status, refusal.why) == (503, why)
    buffer.done(reading)
    assert (buffer.requests, buffer.body_bytes, buffer.held()) == (0, 0, {})


def test_removed_service_admits_nothing_while_its_last_request_is_answered() -> None:
    buffer = make_buffer()
    buffer.serve([of(A)])
    last = admitted(buffer, 0.0)
    assert buffer.dispatch(0.0).given == ((last, A),)
    buffer.serve([])
    assert isinstance(buffer.admit(KEY, 0.1, None), Refusal)
    buffer.put_back(last, 0.2)
    ((request, refusal),) = buffer.dispatch(0.2).refused
    assert request is last
    assert refusal.why is RefusalReason.UNKNOWN


def test_start_that_never_ends_refuses_its_own_requests_and_no_other_services() -> None:
    """Its Retry-After could not be computed, and no service's requests were dispatched any more."""
    buffer = make_buffer(cold_start_s=None)
    waits = admitted(buffer, 0.0, 1.0)
    buffer.serve([of(cold_start_s=math.inf), of(A, key="vision/bert")])
    other = buffer.admit("vision/bert", 0.0, None)
    assert isinstance(other, HeldRequest)
    buffer.complete(other)
    turn = buffer.dispatch(2.0)
    assert turn.given == ((other, A),)
    assert [(one, why.retry_after_s) for one, why in turn.refused] == [(waits, 86_398)]
