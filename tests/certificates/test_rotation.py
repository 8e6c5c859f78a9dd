"""Rotation of certificates: the ones that must exist, for any found state and any time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.certificates.rotation import Places, Source, Work, places, work
from headroom.certificates.values import (
    CA_BACKDATED_S,
    CA_S,
    DAY_S,
    HOUR_S,
    LEAF_BACKDATED_S,
    LEAF_S,
    Authorities,
    Certificate,
    Leaf,
    Role,
)

NOW_S = 1_795_000_000.0
CURRENT, STAGED, PREVIOUS = Source.CURRENT, Source.STAGED, Source.PREVIOUS
NONE, NEW = Source.NONE, Source.NEW
NAME = "headroom-gateway.ns.svc"


def ca(issued_s: float, name: str = "a") -> Certificate:
    """A CA that was issued this many seconds before now."""
    at_s = NOW_S - issued_s
    return Certificate(fingerprint=name, from_s=at_s - CA_BACKDATED_S, until_s=at_s + CA_S)


def leaf(
    issued_s: float = 0.0,
    *,
    signed_by: str = "a",
    name: str = NAME,
    trusts: str = "a",
    life_s: float = LEAF_S,
) -> Leaf:
    at_s = NOW_S - issued_s
    one = Certificate(fingerprint="leaf", from_s=at_s - LEAF_BACKDATED_S, until_s=at_s + life_s)
    return Leaf(certificate=one, signed_by=signed_by, names=(name,), trusts=frozenset(trusts))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        pytest.param(Authorities(), (NEW, NONE, NONE), id="nothing is there"),
        pytest.param(Authorities(current=ca(0)), (CURRENT, NONE, NONE), id="just issued"),
        pytest.param(
            Authorities(current=ca(240 * DAY_S)), (CURRENT, NONE, NONE), id="not due for a week"
        ),
        pytest.param(Authorities(current=ca(244 * DAY_S)), (CURRENT, NEW, NONE), id="due"),
        pytest.param(
            Authorities(current=ca(245 * DAY_S), staged=ca(23 * HOUR_S, "b")),
            (CURRENT, STAGED, NONE),
            id="the next one is distributed for less than a day",
        ),
        pytest.param(
            Authorities(current=ca(245 * DAY_S), staged=ca(25 * HOUR_S, "b")),
            (STAGED, NONE, CURRENT),
            id="the next one is known everywhere",
        ),
        pytest.param(
            Authorities(current=ca(2 * DAY_S, "b"), previous=ca(247 * DAY_S)),
            (CURRENT, NONE, PREVIOUS),
            id="leaves of the previous one are still trusted",
        ),
        pytest.param(
            Authorities(current=ca(120 * DAY_S, "b"), previous=ca(366 * DAY_S)),
            (CURRENT, NONE, NONE),
            id="the previous one expired",
        ),
        pytest.param(
            Authorities(current=ca(366 * DAY_S), staged=ca(2 * HOUR_S, "b")),
            (STAGED, NONE, NONE),
            id="expired, and the next one must begin early",
        ),
        pytest.param(Authorities(current=ca(366 * DAY_S)), (NEW, NONE, NONE), id="expired"),
        pytest.param(
            Authorities(staged=ca(2 * HOUR_S, "b"), previous=ca(300 * DAY_S)),
            (STAGED, NONE, PREVIOUS),
            id="the key of the current one was lost",
        ),
        pytest.param(
            Authorities(current=ca(-HOUR_S)),
            (CURRENT, NONE, NONE),
            id="the clock stepped back by an hour",
        ),
        pytest.param(
            Authorities(current=ca(-400 * DAY_S)),
            (NEW, NONE, NONE),
            id="issued while the clock was a year ahead",
        ),
        pytest.param(
            Authorities(current=ca(245 * DAY_S), staged=ca(-400 * DAY_S, "b")),
            (CURRENT, NEW, NONE),
            id="the next one is of a clock that was ahead",
        ),
        pytest.param(
            Authorities(current=ca(10 * DAY_S), staged=ca(366 * DAY_S, "b")),
            (CURRENT, NONE, NONE),
            id="an expired next one is not due",
        ),
    ],
)
def test_places_of_found_authorities(found: Authorities, wanted: tuple[Source, ...]) -> None:
    assert places(found, NOW_S) == Places(*wanted)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        pytest.param(None, Work.ISSUE, id="nothing is there"),
        pytest.param(leaf(), Work.NOTHING, id="just issued"),
        pytest.param(leaf(15 * HOUR_S), Work.NOTHING, id="not due"),
        pytest.param(leaf(16 * HOUR_S), Work.ISSUE, id="after two thirds of its life"),
        pytest.param(leaf(25 * HOUR_S), Work.ISSUE, id="expired"),
        pytest.param(leaf(-HOUR_S / 2), Work.NOTHING, id="the clock stepped back by half an hour"),
        pytest.param(leaf(-2 * HOUR_S), Work.ISSUE, id="the clock stepped back by two hours"),
        pytest.param(leaf(signed_by=""), Work.ISSUE, id="signed by another CA"),
        pytest.param(leaf(trusts="ac"), Work.TRUST, id="trusts a CA that is gone"),
        pytest.param(leaf(trusts=""), Work.TRUST, id="trusts no CA"),
        pytest.param(leaf(name="headroom-operator.ns.svc"), Work.ISSUE, id="of another service"),
        pytest.param(leaf(life_s=30 * DAY_S), Work.ISSUE, id="lives longer than ours"),
    ],
)
def test_work_for_found_leaf(found: Leaf | None, wanted: Work) -> None:
    trusted = frozenset("a")
    assert work({Role.GATEWAY: found}, trusted, NOW_S, "ns")[Role.GATEWAY] is wanted


def test_work_after_next_ca_is_staged_distributes_trust_and_issues_nothing() -> None:
    found = {Role.GATEWAY: leaf(HOUR_S, trusts="a")}
    assert work(found, frozenset("ab"), NOW_S, "ns")[Role.GATEWAY] is Work.TRUST


moments = st.floats(-2e8, 2e8)
authorities = st.none() | st.builds(ca, moments, st.sampled_from("abc"))


@given(authorities, authorities, authorities)
def test_places_from_any_state_are_valid_now_and_settle_within_a_step(
    current: Certificate | None, staged: Certificate | None, previous: Certificate | None
) -> None:
    found = Authorities(current=current, staged=staged, previous=previous)
    new = {Source.NEW: ca(0, "new"), Source.NONE: None}
    held = {CURRENT: current, STAGED: staged, PREVIOUS: previous} | new
    wanted = places(found, NOW_S)
    after = Authorities(
        current=held[wanted.current], staged=held[wanted.staged], previous=held[wanted.previous]
    )
    assert after.current is not None
    for one in (after.current, after.staged, after.previous):
        assert one is None or one.is_valid(NOW_S)
    again = places(after, NOW_S)
    assert again.is_as_found or again.staged is NEW
    # The one that signs was trusted before, unless none could sign.
    usable = current is not None and current.is_valid(NOW_S)
    if usable and wanted.current is STAGED:
        assert staged is not None
        assert NOW_S - (staged.from_s + CA_BACKDATED_S) >= DAY_S
