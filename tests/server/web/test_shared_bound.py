"""Arriving bytes and connections: a bound for all clients, and a share for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.errors import QueueFullError
from headroom_server.web.shared_bound import Reservation, SharedBound, receiving_bytes

MIB = 1 << 20


def taken(shares: SharedBound, client: str) -> int:
    """Let a client take what it can; return how much."""
    count = 0
    while shares.fits(client, 1):
        shares.take(client, 1)
        count += 1
    return count


def test_clients_share_the_bound_and_a_new_one_finds_room() -> None:
    shares = SharedBound(1024)
    assert [taken(shares, client) for client in "abc"] == [512, 256, 128]
    for _ in range(512):
        shares.give_back("a", 1)
    assert taken(shares, "d") == 320
    assert shares.held == 256 + 128 + 320


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 300)), max_size=60))
def test_sum_stays_within_the_bound(asked: list[tuple[str, int]]) -> None:
    shares = SharedBound(1000)
    reservations = []
    for client, size in asked:
        reservations.append(Reservation(shares, client))
        if shares.fits(client, size):
            reservations[-1].grow(size)
        else:
            with pytest.raises(QueueFullError, match="at most 1000 bytes together"):
                reservations[-1].grow(size)
        assert 0 <= shares.held <= 1000
    for reservation in reservations:
        reservation.close()
    assert shares.held == 0
    assert shares.fits("e", 1000)


def test_receipt_that_shrank_gives_back_only_what_it_still_holds() -> None:
    shares = SharedBound(1000)
    other, one = Reservation(shares, "a"), Reservation(shares, "a")
    other.grow(50)
    one.grow(100)
    one.shrink(30)
    assert shares.held == 120
    one.close()
    one.close()
    assert shares.held == 50


def test_one_client_may_send_two_of_the_largest_bodies() -> None:
    assert receiving_bytes(8 * MIB) == 32 * MIB
    assert receiving_bytes(64 * MIB) == 256 * MIB
