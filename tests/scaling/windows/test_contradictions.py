"""A replica whose metrics the others contradict removes nothing, adds nothing, and is named."""

from __future__ import annotations

import pytest

from headroom.scaling import (
    Routing,
)
from headroom.scaling.values.decision_reason import Reason
from scaling.windows.contradicted_fleet import LIES, Fleet, scaled, seconds


@pytest.mark.parametrize(
    ("replicas", "routing"),
    [(2, Routing.RANDOM), (3, Routing.STICKY), (3, Routing.LEAST_IN_FLIGHT)],
)
@pytest.mark.parametrize("lie", LIES)
def test_lie_of_one_replica_removes_none_and_adds_at_most_one(
    lie: str, replicas: int, routing: Routing
) -> None:
    fleet = Fleet(6.0 * replicas, replicas, routing)
    fleet.run(36)
    decisions = fleet.run(24, LIES[lie]()) + fleet.run(36)
    assert min(one.replicas for one in decisions) == replicas
    assert max(one.replicas for one in decisions) <= replicas + 1


@pytest.mark.parametrize(
    "lie",
    ["other server, idle", "ten times", "a million times", "frozen", "back and forth"],
)
def test_contradicting_replica_is_named(lie: str) -> None:
    fleet = Fleet()
    fleet.run(40)
    last = fleet.run(12, LIES[lie]())[-1]
    assert [one.pod for one in last.left_out] == ["pod-0"]
    assert last.left_out[0].why


def test_reason_says_that_a_replica_contradicts() -> None:
    fleet = Fleet(3.0)
    fleet.current = 4
    fleet.run(3)
    last = fleet.run(30, scaled(0.0))[-1]
    assert last.replicas == 4
    assert last.reason is Reason.REPLICA_CONTRADICTS


def test_replicas_that_all_count_little_are_removed() -> None:
    fleet = Fleet()
    fleet.run(40)
    fleet.share = 0.5
    assert min(one.replicas for one in fleet.run(400)) < 3
    assert all(not one.left_out for one in fleet.run(5))


@pytest.mark.parametrize("even_ticks", [0, 20, 60])
@pytest.mark.parametrize("shares", [(0.6, 1.0, 1.4), (0.2, 0.8, 2.0), (0.36, 1.28), (0.08, 1.92)])
def test_uneven_shares_of_kept_connections_are_no_contradiction(
    shares: tuple[float, ...], even_ticks: int
) -> None:
    """Few windows bear out many connections by chance, so they accuse no replica."""
    fleet = Fleet(replicas=len(shares), routing=Routing.STICKY)
    decisions = fleet.run(even_ticks)
    fleet.shares = list(shares)
    decisions += fleet.run(300)
    assert all(not one.left_out for one in decisions)


def test_new_replica_without_kept_connections_holds_nothing() -> None:
    """Clients keep their connections to the first replica, whose number is not measured yet."""
    fleet = Fleet(replicas=2, routing=Routing.STICKY)
    fleet.shares = [2.0, 0.06]
    for _ in range(60):
        fleet.next()
        assert not fleet.state.contradictions.found


@pytest.mark.parametrize("moved_after", [0, 60])
def test_replica_without_reopened_connections_for_seconds_holds_nothing(moved_after: int) -> None:
    """Few connections are in use at a time, many within the window in which they are learned."""
    fleet = Fleet(36.0, 3, Routing.STICKY)
    fleet.run(moved_after)
    for turn in range(24):
        fleet.shares = [0.0 if number == turn % 3 else 1.5 for number in range(3)]
        for _ in range(3):
            fleet.next()
            assert not fleet.state.contradictions.found


def test_replica_without_its_share_of_many_kept_connections_is_named() -> None:
    fleet = Fleet(routing=Routing.STICKY)
    fleet.run(300)
    last = fleet.run(12, LIES["frozen"]())[-1]
    assert [one.pod for one in last.left_out] == ["pod-0"]


@pytest.mark.parametrize(("in_a_tick", "leaps"), [(23.0, False), (60.0, True)])
def test_replica_of_doubted_share_leaps_only_beyond_chance(in_a_tick: float, leaps: bool) -> None:
    """Each had 13 requests in a tick, then one had a tenth for 20 s; 23 are chance then."""
    fleet = Fleet(13.0, 2, Routing.STICKY)
    fleet.run(30)
    fleet.shares = [0.08, 1.92]
    fleet.run(10)
    fleet.shares = [in_a_tick / fleet.share, 1.0]
    assert [one.pod for one in fleet.next().left_out] == (["pod-0"] if leaps else [])


def test_busy_replica_with_few_requests_is_no_contradiction_where_routing_sees_load() -> None:
    fleet = Fleet(routing=Routing.LEAST_IN_FLIGHT)
    fleet.shares = [0.2, 1.28, 1.52]
    busy = Fleet(routing=Routing.LEAST_IN_FLIGHT)
    busy.shares = fleet.shares
    assert any(one.left_out for one in fleet.run(60))
    assert all(not one.left_out for one in busy.run(60, seconds(6.0)))
