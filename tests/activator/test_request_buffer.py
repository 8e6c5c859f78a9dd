"""Admission, refusals with Retry-After, and dispatch order of held requests."""

from __future__ import annotations

import time

import pytest

from activator.buffers import A, admitted, make_buffer, of
from headroom.activator.held_request import Bounds, HeldRequest, Refusal, RefusalReason
from headroom.activator.request_buffer import RequestBuffer
from headroom.gateway.activator_messages import Served
from support.fakes_activator import KEY


@pytest.mark.parametrize(
    ("cold_start_s", "first_s", "now_s", "timeout_s", "again_s"),
    [
        pytest.param(12.0, 0.0, 0.0, 5.0, 12, id="a start takes longer than the client waits"),
        pytest.param(12.0, 0.0, 4.5, 5.0, 8, id="what is left of it counts, rounded up"),
        pytest.param(12.0, 0.0, 8.0, 5.0, None, id="warm before the deadline: buffer"),
        pytest.param(12.0, 0.0, 0.0, None, None, id="no deadline: the service's, five minutes"),
        pytest.param(400.0, 0.0, 0.0, None, 400, id="longer than the service's own"),
        pytest.param(None, 0.0, 0.0, 1.0, None, id="never measured: buffer"),
    ],
)
def test_request_is_held_only_if_a_replica_can_be_warm_in_time(
    cold_start_s: float | None,
    first_s: float,
    now_s: float,
    timeout_s: float | None,
    again_s: int | None,
) -> None:
    buffer = make_buffer(cold_start_s=cold_start_s)
    buffer.admit(KEY, first_s, None)
    outcome = buffer.admit(KEY, now_s, timeout_s)
    if again_s is None:
        assert isinstance(outcome, HeldRequest)
    else:
        assert isinstance(outcome, Refusal)
        assert (outcome.status, outcome.why) == (503, RefusalReason.TOO_LATE)
        assert outcome.retry_after_s == again_s


def test_bounds_on_count_and_bytes_refuse_with_retry_after() -> None:
    bounds = Bounds(requests=5, requests_per_service=2, body_bytes=1700)
    buffer = RequestBuffer(bounds)
    buffer.serve([of(cold_start_s=9.0), of(key="vision/bert")])
    first, second = admitted(buffer, 0.0), admitted(buffer, 0.0)
    third = buffer.admit(KEY, 1.0, None)
    assert isinstance(third, Refusal)
    assert (third.status, third.why, third.retry_after_s) == (429, RefusalReason.TOO_MANY, 8)
    assert isinstance(buffer.admit("vision/bert", 1.0, None), HeldRequest)
    assert isinstance(
        buffer.admit("vision/bert", 1.0, None), Refusal
    )  # three of five for one namespace
    assert buffer.grow(first, 600, 1.0) is None
    large = buffer.grow(second, 600, 1.0)
    assert large is not None
    assert (large.status, large.retry_after_s) == (429, 8)
    buffer.done(first)
    assert buffer.grow(second, 600, 1.0) is None
    assert (buffer.requests, buffer.body_bytes) == (2, 600)


def test_one_namespace_leaves_room_for_another() -> None:
    """Sixteen bodies of 8 MiB for a service that never starts, and 4096 requests without one."""
    buffer = RequestBuffer(Bounds())
    buffer.serve(
        [of(key=f"hostile/{name}", max_body_bytes=8 << 20) for name in "abc"]
        + [of(max_body_bytes=8 << 20)]
    )
    grown = [
        buffer.grow(held, 8 << 20, 0.0)
        for _ in range(16)
        if isinstance(held := buffer.admit("hostile/a", 0.0, None), HeldRequest)
    ]
    assert grown.count(None) == 8
    for key in ("hostile/b", "hostile/c"):
        for _ in range(2048):
            buffer.admit(key, 0.0, None)
    assert buffer.requests == 2048
    stranger = admitted(buffer, 1.0)
    assert buffer.grow(stranger, 8 << 20, 1.0) is None


def test_services_of_a_namespace_are_forwarded_within_its_share_of_the_bytes() -> None:
    """Each of 1000 services has one request and one replica; half of 128 MiB is for 256."""
    buffer = RequestBuffer(Bounds())
    keys = [f"hostile/{number}" for number in range(1000)]
    buffer.serve(of(A, key=key) for key in keys)
    for key in keys:
        held = buffer.admit(key, 0.0, None)
        assert isinstance(held, HeldRequest)
        buffer.complete(held)
    given = buffer.dispatch(1.0).given
    assert len(given) == 256
    assert buffer.body_bytes == 64 << 20
    for one, _ in given[:2]:
        buffer.done(one)
    assert len(buffer.dispatch(2.0).given) == 2


def test_namespace_whose_bodies_fill_its_share_goes_on_one_at_a_time() -> None:
    buffer = RequestBuffer(Bounds(body_bytes=4 << 20))
    buffer.serve(of(A, key=key, max_body_bytes=2 << 20) for key in ("vision/a", "vision/b"))
    for key in ("vision/a", "vision/b"):
        held = buffer.admit(key, 0.0, None)
        assert isinstance(held, HeldRequest)
        assert buffer.grow(held, 1 << 20, 0.0) is None
        buffer.complete(held)
    ((first, _),) = buffer.dispatch(1.0).given
    buffer.put_back(first, 1.0)
    ((second, _),) = buffer.dispatch(1.0).given
    assert (first.key, second.key) == ("vision/a", "vision/b")
    buffer.done(second)
    assert buffer.dispatch(2.0).given == ((first, A),)


def test_services_without_a_held_request_cost_next_to_nothing() -> None:
    """Each request dispatches twice; with 1000 services at zero that took 2 ms."""
    buffer = RequestBuffer(Bounds())
    keys = [f"tenant-{number}/model" for number in range(2000)]
    buffer.serve(of(key=key) for key in keys)

    def took_s() -> float:
        begun_s = time.process_time()
        for _ in range(10):
            buffer.dispatch(1.0)
        return time.process_time() - begun_s

    idle_s = min(took_s() for _ in range(5))
    for key in keys:
        assert isinstance(buffer.admit(key, 0.0, None), HeldRequest)
    assert idle_s < 0.25 * min(took_s() for _ in range(5))


def test_body_above_the_service_bound_is_refused_with_413() -> None:
    buffer = make_buffer(max_body_bytes=1000)
    refusal = buffer.grow(admitted(buffer, 0.0), 100_000, 0.0)
    assert refusal is not None
    assert (refusal.status, refusal.why, refusal.retry_after_s) == (
        413,
        RefusalReason.TOO_LARGE,
        None,
    )


def test_expired_request_is_refused_before_its_deadline_with_retry_after() -> None:
    """The start takes 10 s; at 4.75 s of a 5 s deadline, 6 s remain, rounded up."""
    buffer = make_buffer(cold_start_s=None)
    request = admitted(buffer, 0.0, 5.0)
    buffer.serve([of(cold_start_s=10.0)])
    assert buffer.dispatch(4.7).refused == ()
    ((refused, why),) = buffer.dispatch(4.75).refused
    assert refused is request
    assert (why.status, why.why, why.retry_after_s) == (503, RefusalReason.EXPIRED, 6)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([of(A, cold_start_s=10.0)], id="a replica came and went"),
        pytest.param([], id="the service was removed and made again"),
    ],
)
def test_each_start_from_zero_takes_its_own_time(between: list[Served]) -> None:
    buffer = make_buffer(cold_start_s=10.0)
    buffer.admit(KEY, 0.0, 5.0)
    for now_s, again_s in ((4.0, 6), (100.0, 10), (104.0, 6)):
        if now_s == 100.0:
            buffer.serve(between)
            buffer.serve([of(cold_start_s=10.0)])
        refusal = buffer.admit(KEY, now_s, 5.0)
        assert isinstance(refusal, Refusal)
        assert refusal.retry_after_s == again_s
