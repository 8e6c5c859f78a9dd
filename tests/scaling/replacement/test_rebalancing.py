"""Overloaded replicas are evicted where that spreads kept connections, and only there."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling.demand.connections import MOST, Connections
from headroom.scaling.replacement.budget import LONG_S, REBALANCING, SHORT_S, Budget
from headroom.scaling.replacement.late_load import late_load, late_load_after
from headroom.scaling.replacement.rebalancer import (
    EVICTED_WITHIN_S,
    REFUSED_S,
    WANTED_S,
    Rebalancer,
    Situation,
)
from headroom.scaling.replacement.spread import Load, Spread, is_uneven
from headroom.scaling.values.replica_defect import Defect

NOW = Situation(
    now_s=1000.0,
    current=5,
    usable=True,
    may_surge=True,
    allowed=0.05,
    connections=64,
    carried=0.3,
    enough=4,
)


def load(*arrived: float, late: float = 1.0, settled: int | None = None) -> Load:
    """Return replicas where those with more than 0.3 of the requests answer them late."""
    counts = np.array(arrived)
    overloaded = counts > NOW.carried * counts.sum()
    return Load(
        replicas=tuple(f"pod-{number}" for number in range(len(arrived))),
        settled=np.arange(len(arrived)) < (len(arrived) if settled is None else settled),
        arrived=counts,
        ended=counts,
        late=np.where(overloaded, late * counts, 0.0),
        weights=counts,
    )


PINNED = load(1600.0, 1600.0, 0.0, 0.0, 0.0)


def watching(one: Load, now_s: float = 0.0) -> Rebalancer:
    return Rebalancer().watching(frozenset(one.replicas), now_s)


@pytest.mark.parametrize(
    ("shares", "carried", "expected"),
    [([0.5, 0.5, 0.0], 0.3, 1.0), ([0.4, 0.3, 0.3], 0.35, 0.4), ([0.25] * 4, 0.25, 0.0)],
)
def test_late_load_is_that_of_overloaded_replicas(
    shares: list[float], carried: float, expected: float
) -> None:
    assert late_load(np.array(shares), carried) == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(
    connections=st.lists(st.integers(0, 3), min_size=2, max_size=4),
    evicted=st.integers(1, 2),
    carried=st.floats(0.05, 1.0),
)
def test_late_load_after_an_eviction_is_the_mean_over_all_bindings(
    connections: list[int], evicted: int, carried: float
) -> None:
    held = sorted(connections, reverse=True)
    moved, total = sum(held[:evicted]), sum(held)
    rest = held[evicted:]
    if not moved or not rest:
        return
    bindings = []
    for binding in product(range(len(rest)), repeat=moved):
        after = [own + binding.count(place) for place, own in enumerate(rest)]
        bindings.append(sum(one for one in after if one / total > carried + 1e-9) / total)
    found = late_load_after(np.array(held) / total, evicted, float(total), carried)
    assert found == pytest.approx(sum(bindings) / len(bindings), abs=1e-6)


def test_replica_with_half_of_the_load_is_evicted_once_new_ones_are_idle() -> None:
    found = watching(PINNED).step(NOW, PINNED)
    assert found.victims == ("pod-0",)
    shown = found.shown
    assert shown is not None
    assert shown.deletes
    assert shown.defect is Defect.OVERLOADED
    assert shown.detail == "has 50% of the load and 3 of 5 have hardly any"


@pytest.mark.parametrize(
    ("now", "one"),
    [
        pytest.param(replace(NOW, usable=False), PINNED, id="metrics are stale"),
        pytest.param(replace(NOW, enough=5, may_surge=False), PINNED, id="all are needed"),
        pytest.param(NOW, load(640.0, 640.0, 640.0, 640.0, 640.0), id="even"),
        pytest.param(NOW, load(40.0, 24.0, 18.0, 10.0, 8.0), id="uneven by chance"),
        pytest.param(NOW, load(1600.0, 1600.0, 0.0, 0.0, 0.0, late=0.0), id="in time"),
        pytest.param(NOW, load(1600.0, 1600.0, 0.0, 0.0, 0.0, settled=2), id="just ready"),
        pytest.param(replace(NOW, connections=2), PINNED, id="two connections"),
        pytest.param(replace(NOW, carried=0.05), PINNED, id="no spread is carried"),
        pytest.param(NOW, load(0.0, 0.0), id="no requests"),
    ],
)
def test_no_replica_is_evicted(now: Situation, one: Load) -> None:
    assert watching(one).step(now, one).victims == ()


def test_idle_replica_is_started_first_where_the_others_would_not_carry_the_load() -> None:
    found = watching(PINNED).step(replace(NOW, enough=5), PINNED)
    assert found.victims == ()
    assert found.wanted == 6


@pytest.mark.parametrize(("after_s", "wanted"), [(2.0, 6), (WANTED_S, 6), (WANTED_S + 2.0, 0)])
def test_replica_for_an_eviction_is_kept_while_requests_are_in_time_for_some_ticks(
    after_s: float, wanted: int
) -> None:
    found = watching(PINNED).step(replace(NOW, enough=5), PINNED)
    assert found.step(replace(NOW, now_s=NOW.now_s + after_s), None).wanted == wanted


@pytest.mark.parametrize(("after_s", "wanted"), [(2.0, 6), (108.0, 6), (110.0, 0)])
def test_replica_for_an_eviction_is_kept_until_it_can_be_ready(after_s: float, wanted: int) -> None:
    slow = replace(NOW, enough=5, start_s=100.0)
    found = watching(PINNED).step(slow, PINNED)
    assert found.step(replace(slow, now_s=NOW.now_s + after_s), None).wanted == wanted


@pytest.mark.parametrize(("after_s", "wanted"), [(2.0, 7), (WANTED_S, 7), (WANTED_S + 2.0, 6)])
def test_more_replicas_for_evictions_are_kept_though_fewer_would_do_now(
    after_s: float, wanted: int
) -> None:
    two = watching(PINNED).step(replace(NOW, enough=6), PINNED)
    assert two.wanted == 7
    one = two.step(replace(NOW, enough=5, now_s=NOW.now_s + after_s), PINNED)
    assert one.wanted == wanted


def test_eviction_that_is_refused_is_given_up_and_tried_again() -> None:
    begun = watching(PINNED).step(NOW, PINNED)
    late = replace(NOW, now_s=NOW.now_s + EVICTED_WITHIN_S)
    refused = begun.step(late, PINNED)
    assert refused.victims == ()
    assert refused.step(late, PINNED).victims == ()
    again = replace(late, now_s=late.now_s + REFUSED_S)
    assert refused.step(again, PINNED).victims == ("pod-0",)


def test_eviction_ends_once_the_replica_is_gone_or_metrics_are_stale() -> None:
    begun = watching(PINNED).step(NOW, PINNED)
    left = frozenset(PINNED.replicas[1:])
    gone = begun.watching(left, NOW.now_s + 2.0)
    assert gone.victims == ()
    assert gone.since_s == NOW.now_s + 2.0
    assert gone.watching(left | {"pod-5"}, NOW.now_s + 9.0).since_s == NOW.now_s + 2.0
    assert begun.step(replace(NOW, usable=False), None).victims == ()


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.floats(0.0, 2000.0), min_size=2, max_size=12),
    connections=st.integers(1, 1000),
    carried=st.floats(0.01, 1.0),
    enough=st.integers(0, 12),
)
def test_remaining_replicas_always_carry_the_arrivals(
    counts: list[float], connections: int, carried: float, enough: int
) -> None:
    one = load(*counts)
    now = replace(NOW, connections=connections, carried=carried, enough=enough)
    found = watching(one).step(now, one)
    assert len(found.victims) <= max(0, min(len(counts) - 1, len(counts) - enough))


@settings(max_examples=20, deadline=None)
@given(
    replicas=st.integers(2, 20),
    seed=st.integers(0, 1000),
    waits_s=st.lists(st.floats(2.0, 120.0), max_size=200),
)
def test_evictions_never_exceed_their_budget(
    replicas: int, seed: int, waits_s: list[float]
) -> None:
    chance, evicted = np.random.default_rng(seed), list[float]()
    now_s, state = 0.0, Rebalancer()
    names = [f"pod-{number}" for number in range(replicas)]
    for wait_s in waits_s:
        now_s += wait_s
        one = replace(load(*chance.choice([0.0, 900.0, 1600.0], replicas)), replicas=tuple(names))
        state = state.watching(frozenset(names), now_s)
        now = replace(NOW, now_s=now_s, current=replicas, enough=0, carried=0.2)
        state = state.step(now, one)
        for victim in state.victims:
            evicted.append(now_s)
            names[names.index(victim)] = f"new-{len(evicted)}"
        state = replace(state, victims=())
    for at_s in evicted:
        soon = sum(0.0 <= at_s - one < SHORT_S for one in evicted)
        hour = sum(0.0 <= at_s - one < LONG_S for one in evicted)
        assert soon <= max(REBALANCING.least, REBALANCING.share * replicas)
        assert hour <= max(REBALANCING.long_least, REBALANCING.long_share * replicas)


def test_budget_of_rebalancing_follows_the_replicas() -> None:
    assert Budget(limits=REBALANCING).left(0.0, 5) == 4
    assert Budget(limits=REBALANCING).left(0.0, 40) == 20


def test_evidence_of_late_requests_overrides_the_model_of_what_is_carried() -> None:
    spread = Spread.of(PINNED, 64, 0.9, 0.05)
    assert spread is not None
    assert spread.carried == pytest.approx(0.95 * 0.5)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((70.0, 40.0, 40.0, 30.0, 20.0), False),
        ((90.0, 30.0, 30.0, 25.0, 25.0), True),
        ((50.0, 50.0, 50.0, 50.0, 0.0), True),
        ((0.0, 0.0), False),
    ],
)
def test_chance_explains_small_differences(counts: tuple[float, ...], *, expected: bool) -> None:
    assert is_uneven(np.array(counts)) is expected


def learned(
    arrived: list[list[float]], ready: list[list[str]], *, kept: bool = True
) -> Connections:
    """Return what windows of 30 s teach, each with the replicas that are ready in it."""
    found = Connections()
    for number, (counts, names) in enumerate(zip(arrived, ready, strict=True)):
        found = found.watching(names)
        shares = np.array([found.expected[name] for name in names]) if kept else None
        found = found.observe(30.0 * number, np.array(counts), shares)
    return found


TWO, FIVE = ["a", "b"], ["a", "b", "c", "d", "e"]


def test_idle_new_replicas_do_not_look_like_few_connections() -> None:
    counts = [[1000.0, 1060.0]] + [[1000.0, 1060.0, 0.0, 0.0, 0.0]] * 9
    assert learned(counts, [TWO] + [FIVE] * 9).number > 100
    assert learned(counts, [TWO] + [FIVE] * 9, kept=False).number < 10


def test_connections_of_a_replica_that_ends_are_expected_at_the_others() -> None:
    left = Connections().watching(TWO).watching(FIVE).watching(FIVE[1:])
    assert left.expected == pytest.approx({"b": 0.625, "c": 0.125, "d": 0.125, "e": 0.125})
    assert sum(left.expected.values()) == pytest.approx(1.0)
    assert left.watching(FIVE[1:]) is left


def test_even_requests_at_new_replicas_are_balanced_one_by_one() -> None:
    counts = [[1000.0, 1010.0]] + [[400.0, 410.0, 395.0, 402.0, 405.0]] * 9
    assert learned(counts, [TWO] + [FIVE] * 9).number == MOST


@pytest.mark.parametrize("counts", [[1000.0, 0.0], [14.0, 1.0], [950.0, 50.0]])
def test_connections_that_a_new_replica_lacks_teach_nothing(counts: list[float]) -> None:
    """A few clients connect again: read as an uneven load of equals, one connection is left."""
    found = Connections(expected={"a": 1.0, "b": 0.0})
    for number in range(20):
        found = found.observe(30.0 * number, np.array(counts), np.array([1.0, 0.0]))
    assert found.number == MOST
