"""The family's members: a name always draws the same workload."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decision_study.family import client_draws, hard, instants, loads, members, plants, rates
from decision_study.family.draws import Draws
from decision_study.family.members import DEVELOP, JUDGE, MEMBERS, per_second, scenario_of
from headroom.simulator.arrivals import Profile
from headroom.simulator.arrivals.recorded_trace import RequestTrace
from headroom.simulator.clients import Clients

SHAPES = (
    rates.jumps,
    rates.modulated,
    rates.on_off,
    rates.growth,
    rates.daily,
    rates.surges,
)


def test_aspects_of_a_member_are_independent_and_repeat() -> None:
    one, other = Draws.of("a", "load"), Draws.of("a", "plant")
    numbers = [one.between(0, 1) for _ in range(3)]
    assert numbers != [other.between(0, 1) for _ in range(3)]
    again = Draws.of("a", "load")
    assert numbers == [again.between(0, 1) for _ in range(3)]


@pytest.mark.parametrize("shape", SHAPES)
@given(name=st.text("abc", min_size=1, max_size=4), hours=st.sampled_from((1, 2, 3)))
def test_shape_lasts_as_long_as_asked_with_requests(
    shape: Callable[[Draws, float], Profile], name: str, hours: int
) -> None:
    profile = shape(Draws.of(name, "load"), 3600.0 * hours)
    assert profile.duration_s == pytest.approx(3600.0 * hours)
    assert profile.start_rps.min() >= 0
    assert 0 < profile.requests < math.inf


@given(jitter=st.floats(0, 0.15), name=st.text("abc", max_size=3))
def test_surges_begin_within_their_jitter(jitter: float, name: str) -> None:
    profile = rates.surged(
        Draws.of(name, "load"), 7200.0, every_s=600, lasting_s=120, jitter=jitter, base=0.25
    )
    began_s = profile.edges_s[:-1][profile.start_rps == 1.0]
    assert len(began_s) in (11, 12)
    off = np.abs(began_s - 600 * np.round(began_s / 600))
    assert off.max() <= 600 * jitter + 1e-6


def test_clumps_come_at_once_and_in_their_number() -> None:
    times_s = instants.clumps(Draws.of("a", "load"), 600.0, size=50, every_s=60.0)
    instants_s, counts = np.unique(times_s, return_counts=True)
    assert np.diff(instants_s) == pytest.approx(60.0)
    assert set(counts) == {50}


def test_self_exciting_arrivals_have_the_rate_and_more_variance_than_poisson() -> None:
    times_s = instants.self_exciting(
        Draws.of("a", "load"), 20_000.0, rps=5.0, share=0.8, decay_s=10.0
    )
    assert len(times_s) / 20_000 == pytest.approx(5.0, rel=0.1)
    counts = np.bincount((times_s // 60).astype(int))[:333]
    # a Hawkes process approaches 1 / (1 - share)^2 = 25; Poisson has 1
    assert 10 < counts.var() / counts.mean() < 40


def test_recording_is_replayed_as_it_is_and_begins_again() -> None:
    trace = RequestTrace(name="t", arrivals_s=np.array([0.0, 1.0, 1.5, 8.5]))
    times_s = instants.recorded(trace, start_s=1.2, duration_s=10.0)
    assert times_s.tolist() == pytest.approx([0.3, 7.3, 7.8, 8.8, 9.3])


def test_sets_have_the_same_classes_and_other_functions() -> None:
    for which in (DEVELOP, JUDGE):
        chosen = [member for member in MEMBERS.values() if member.set == which]
        assert len(chosen) >= 150
        assert set(Counter(member.load for member in chosen).values()) == {16}
        waiting = sum(not member.alone for member in chosen) / len(chosen)
        assert 0.3 <= waiting <= 0.35
    columns = loads._COLUMNS
    assert not set(columns[0::2]) & set(columns[1::2])


@pytest.mark.parametrize("name", ["develop-011-modulated", "judge-004-clumps"])
def test_member_is_within_its_bounds_and_always_the_same(name: str) -> None:
    scenario = scenario_of(name)
    (workload,) = scenario.workloads
    spec = workload.spec
    counts = per_second(workload.arrivals)
    scenario_of.cache_clear()
    assert scenario_of(name).workloads[0].spec == spec
    assert per_second(scenario_of(name).workloads[0].arrivals).tolist() == counts.tolist()
    assert round(scenario.duration_s) in (7200, 10_800)
    assert 10 <= spec.cold_start.median_s <= 300
    assert plants.FASTEST_S <= spec.server.execution_s(1) <= plants.SLOWEST_S
    peak = members.peak_need(spec, counts, members.limit_rps(spec, counts))
    assert spec.policy.max_replicas == max(2, -(-3 * peak // 2))
    places = spec.server.max_batch * spec.server.slots
    assert spec.clients.max_waiting == plants.WAITING_BATCHES * places


def test_users_ask_for_the_load_if_they_are_answered() -> None:
    spec = plants.drawn(Draws.of("a", "plant")).spec(0.1, 10)
    counts = np.repeat([6.0, 12.0], 60)
    clients = client_draws.clients_of(client_draws.USERS, Draws.of("a", "clients"), spec, counts)
    assert clients is not None
    cycle_s = clients.think_s + 0.5 * spec.policy.latency_target_s
    assert [users for _, users in clients.user_steps] == [round(6 * cycle_s), round(12 * cycle_s)]


@pytest.mark.parametrize("rps", [1.0, 1e5])
def test_connections_suffice_for_the_peak_or_there_are_no_clients(rps: float) -> None:
    spec = plants.drawn(Draws.of("a", "plant")).spec(0.1, 10)
    found = client_draws.clients_of(
        client_draws.LIMITED, Draws.of("a", "clients"), spec, np.full(60, rps)
    )
    if rps > 1:
        assert found is None
    else:
        assert isinstance(found, Clients)
        assert found.connections is not None
        assert found.connections >= rps * spec.policy.latency_target_s / 2


def test_hard_rows_have_their_events_after_the_first_hour() -> None:
    step = hard.scenario_of("hard-doubling-every-10min-start-180s").workloads[0]
    counts = per_second(step.arrivals)
    assert counts[:3600].mean() == pytest.approx(2.5, rel=0.1)
    assert counts[-600:].mean() == pytest.approx(80, rel=0.05)
    slow = hard.scenario_of("hard-one-of-five-10x-slower")
    assert [fault.start_s for fault in slow.faults] == [3660.0]


@pytest.mark.parametrize(
    ("name", "requests", "single_s", "most", "asks"),
    [
        ("develop-000-jumps", 52_752, 0.158295, 15, "users"),
        ("develop-024-clumps", 6_730, 1.2, 3, "alone"),
        ("develop-142-self-exciting", 109_202, 1.2, 27, "limited"),
        ("judge-009-functions", 43_172, 0.507929, 12, "limited"),
        ("judge-118-recorded", 135_087, 1.2, 9, "retrying"),
        ("judge-003-on-off", 28_357, 0.403134, 8, "retrying"),
    ],
)
def test_members_are_those_that_were_judged_or_their_version_is_raised(
    name: str, requests: int, single_s: float, most: int, asks: str
) -> None:
    (workload,) = scenario_of(name).workloads
    found = (
        int(per_second(workload.arrivals).sum()),
        round(workload.spec.server.execution_s(1), 6),
        workload.spec.policy.max_replicas,
        MEMBERS[name].asks,
    )
    assert found == (requests, single_s, most, asks), "raise FAMILY in versions.py and adapt this"
