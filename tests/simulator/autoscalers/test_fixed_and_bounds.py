"""Static sizes and the three bounds, on arrivals that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroom.simulator.autoscalers.bounds import Clairvoyant, IdealReactive, Oracle, late_start_s
from headroom.simulator.autoscalers.fixed import StaticMean, StaticPeak
from headroom.simulator.autoscalers.peer import Peer, limit_rps, needed, window_rates
from headroom.simulator.cold_start import ColdStart
from simulator.autoscalers.fakes_view import World, truth


def steps(*parts: tuple[int, float]) -> NDArray[np.float64]:
    """Arrivals per second: this many seconds at each rate."""
    return np.concatenate([np.full(seconds, rate) for seconds, rate in parts])


def asked(peer: Peer, at_s: float) -> int:
    world = World.of(1)
    world.now_s = at_s
    return world.ask(peer).replicas


def test_limit_is_the_lower_of_slo_capacity_and_ceiling() -> None:
    # Full batches: 8 / 32 ms = 250 rps.
    assert limit_rps(truth(capacity_rps=150.0), 0.8) == 150.0
    assert limit_rps(truth(capacity_rps=240.0), 0.8) == pytest.approx(200.0)


def test_window_rates_are_aligned_and_last_may_be_short() -> None:
    assert window_rates(np.array([2.0, 4.0, 6.0]), 2).tolist() == [3.0, 6.0]
    assert window_rates(np.zeros(0), 2).tolist() == []


@pytest.mark.parametrize(
    ("rate", "expected"), [(0.0, 0), (1.0, 1), (150.0, 1), (150.1, 2), (400.0, 3)]
)
def test_needed_replicas_by_hand(rate: float, expected: int) -> None:
    assert needed(np.array([rate]), 150.0).tolist() == [expected]


def test_replica_without_capacity_is_rejected() -> None:
    with pytest.raises(ValueError, match="limit > 0; got 0 rps"):
        needed(np.array([1.0]), 0.0)


@pytest.mark.parametrize(
    ("peer", "margin", "expected"),
    [
        pytest.param(StaticPeak, 1.0, 3, id="the busiest minute: 400 / 150"),
        pytest.param(StaticPeak, 1.5, 4, id="600 / 150"),
        pytest.param(StaticMean, 1.0, 2, id="the mean: 200 / 150"),
        pytest.param(StaticMean, 2.0, 3, id="400 / 150"),
    ],
)
def test_static_sizes_by_hand(
    peer: type[StaticPeak | StaticMean], margin: float, expected: int
) -> None:
    known = truth(arrivals_per_s=steps((120, 100), (60, 400)))
    assert {asked(peer(truth=known, margin=margin), at) for at in (0, 100, 179)} == {expected}


def test_static_without_arrivals_is_one() -> None:
    assert asked(StaticPeak(truth=truth()), 0) == asked(StaticMean(truth=truth()), 0) == 1


def test_oracle_requests_need_of_present_window() -> None:
    peer = Oracle(truth=truth(arrivals_per_s=steps((300, 100), (100, 400))))
    assert [asked(peer, at) for at in (0, 299, 300, 399, 500)] == [1, 1, 3, 3, 3]


def test_late_cold_start_is_the_sum_of_p99_phases() -> None:
    assert late_start_s(ColdStart.of(60.0)) == pytest.approx(60.0)
    assert late_start_s(ColdStart.of(60.0, spread=1.2)) == pytest.approx(91.7, abs=0.1)


def test_clairvoyant_requests_one_cold_start_and_tick_ahead() -> None:
    peer = Clairvoyant(truth=truth(arrivals_per_s=steps((300, 100), (100, 400), (200, 100))))
    assert [asked(peer, at) for at in (230, 235, 240, 399, 400)] == [1, 1, 3, 3, 1]
    patient = Clairvoyant(truth=peer.truth, extra_lead_s=60.0)
    assert [asked(patient, at) for at in (175, 180)] == [1, 3]


@pytest.mark.parametrize(
    ("gap_s", "within"),
    [
        pytest.param(40, 3, id="shorter than a cold start: held"),
        pytest.param(60, 3, id="as long: held"),
        pytest.param(200, 1, id="longer: dropped"),
    ],
)
def test_clairvoyant_over_gaps(gap_s: int, within: int) -> None:
    timeline = steps((100, 400), (gap_s, 100), (100, 400))
    peer = Clairvoyant(truth=truth(arrivals_per_s=timeline))
    assert min(asked(peer, at) for at in range(100, 100 + gap_s, 5)) == within


@given(
    rates=st.lists(st.integers(0, 900), min_size=1, max_size=30),
    cold_s=st.sampled_from([0.0, 20.0, 60.0, 180.0]),
)
def test_clairvoyant_has_need_one_cold_start_ahead(rates: list[int], cold_s: float) -> None:
    timeline = steps(*((20, float(rate)) for rate in rates))
    peer = Clairvoyant(
        truth=truth(arrivals_per_s=timeline, cold_start=ColdStart.of(cold_s), capacity_rps=150.0)
    )
    plan = {at: asked(peer, at) for at in range(0, len(timeline), 5)}
    for at in plan:
        need = -(-rates[at // 20] // 150)
        created_by = [then for then in plan if at - cold_s - 5 < then <= at]
        assert min(plan[then] for then in created_by) >= need


def test_ideal_reactive_knows_the_last_ten_seconds_and_holds_300() -> None:
    peer = IdealReactive(truth=truth(arrivals_per_s=steps((100, 100), (100, 400), (600, 100))))
    timeline = {at: asked(peer, at) for at in range(0, 802, 2)}
    assert timeline[100] == 1
    assert timeline[104] == 2  # (6 x 100 + 4 x 400) / 10 = 220 rps
    assert timeline[110] == 3
    assert timeline[498] == 3  # 202 s and earlier still needed 3: 370 rps at 202.
    assert timeline[502] == 2  # 206 needed 2: 220 rps.
    assert timeline[512] == 1


def test_ideal_reactive_stays_under_its_ceiling() -> None:
    peer = IdealReactive(truth=truth(arrivals_per_s=steps((60, 350)), capacity_rps=240.0))
    assert asked(peer, 30) == 2  # 0.7 x 250 = 175 rps each.
    assert IdealReactive(truth=peer.truth).evaluate(World.of(4).view()).replicas == 4
