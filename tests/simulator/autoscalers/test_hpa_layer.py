"""The HPA's arithmetic and behaviour, by hand from replica_calculator.go and horizontal.go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.values.policy import Policy, RateLimit
from headroom.simulator.autoscalers.hpa_controller import (
    HpaBehavior,
    Rules,
    combine,
    from_average,
    from_pods,
    from_value,
)

POLICY = Policy(latency_target_s=0.25, max_replicas=50)


@pytest.mark.parametrize(
    ("values", "missing", "unready", "expected"),
    [
        pytest.param((0.9, 0.9, 0.9), 0, 0, 4, id="ratio 1.286: ceil(3.86)"),
        pytest.param((0.77, 0.77, 0.77), 0, 0, 3, id="ratio 1.1 is within the tolerance"),
        pytest.param((0.78, 0.78, 0.78), 0, 0, 4, id="ratio 1.114: ceil(3.34)"),
        pytest.param((0.63, 0.63, 0.63), 0, 0, 3, id="ratio 0.9 is within the tolerance"),
        pytest.param((0.35,) * 4, 0, 0, 2, id="ratio 0.5: ceil(2)"),
        pytest.param((0.9, 0.9), 1, 0, 3, id="up, the missing at 0: 0.857 turns around, stay"),
        pytest.param((1.0,) * 4, 1, 0, 6, id="up, the missing at 0: 1.143 x 5 = 5.7"),
        pytest.param((0.2, 0.2), 1, 0, 2, id="down, the missing at target: 0.524 x 3 = 1.57"),
        pytest.param((0.5,), 1, 0, 2, id="down, the missing at target: 0.857 x 2 = 1.7"),
        pytest.param((1.0,) * 4, 0, 1, 6, id="up, the unready at 0: 1.143 x 5 = 5.7"),
        pytest.param((0.9, 0.9), 0, 2, 4, id="up, the unready at 0: 0.64 turns around, stay"),
        pytest.param((0.2, 0.2), 0, 1, 1, id="down, the unready ignored: 0.286 x 2 = 0.57"),
        pytest.param((), 3, 0, None, id="no pod has a value: the metric failed"),
    ],
)
def test_pods_metric_by_hand(
    values: tuple[float, ...], missing: int, unready: int, expected: int | None
) -> None:
    ready = [f"pod-{index}" for index in range(len(values) + missing)]
    assert expected == from_pods(
        dict(zip(ready, values, strict=False)),
        ready=ready,
        unready=unready,
        current=len(ready) + unready,
        target=0.7,
        tolerance=0.1,
    )


@pytest.mark.parametrize(
    ("value", "ready", "current", "expected"),
    [
        pytest.param(1.5, 4, 4, 6, id="ceil(1.5 x 4)"),
        pytest.param(1.5, 4, 8, 6, id="only ready pods are multiplied"),
        pytest.param(1.1, 4, 4, 4, id="within the tolerance"),
        pytest.param(0.4, 5, 5, 2, id="ceil(0.4 x 5)"),
        pytest.param(0.0, 5, 5, 0, id="nothing"),
        pytest.param(1.05, 0, 0, 2, id="at zero replicas no tolerance"),
    ],
)
def test_value_metric_by_hand(value: float, ready: int, current: int, expected: int) -> None:
    assert expected == from_value(value, ready=ready, current=current, target=1.0, tolerance=0.1)


@pytest.mark.parametrize(
    ("total", "existing", "expected"),
    [
        pytest.param(30.0, 3, 4, id="30 / 24 = 1.25: ceil(30 / 8)"),
        pytest.param(26.0, 3, 3, id="26 / 24 = 1.083 is within the tolerance"),
        pytest.param(0.0, 3, 0, id="nothing"),
        pytest.param(9.0, 0, 2, id="from zero"),
        pytest.param(0.0, 0, 0, id="zero stays zero"),
    ],
)
def test_average_value_metric_by_hand(total: float, existing: int, expected: int) -> None:
    assert expected == from_average(total, existing=existing, target=8.0, tolerance=0.1)


@pytest.mark.parametrize(
    ("proposals", "expected"),
    [
        pytest.param([3, 5], 5, id="the larger"),
        pytest.param([None, None], None, id="all failed: skip"),
        pytest.param([None, 6], 6, id="one failed, the other says up"),
        pytest.param([None, 2], None, id="one failed, the other says down: skip"),
    ],
)
def test_largest_proposal_by_hand(proposals: list[int | None], expected: int | None) -> None:
    assert combine(proposals, current=4) == expected


def test_scale_up_is_at_most_four_or_double_per_15_s() -> None:
    behavior = HpaBehavior(policy=POLICY)
    assert behavior.settle(0.0, 3, 20).replicas == 7  # 3 + 4 > 2 x 3
    assert behavior.settle(10.0, 7, 20).replicas == 7  # The period began with 3.
    assert behavior.settle(15.0, 7, 20).replicas == 14  # 2 x 7 > 7 + 4
    assert behavior.settle(30.0, 14, 20).replicas == 20


def test_scale_down_waits_300_s_for_the_largest_recommendation() -> None:
    behavior = HpaBehavior(policy=POLICY)
    asked = {at: behavior.settle(at, 10, 2 if at else 10) for at in range(0, 301, 15)}
    assert asked[285].replicas == 10
    assert asked[285].reason == "ScaleDownStabilized"
    assert asked[300].replicas == 2


def test_high_recommendation_restarts_the_window() -> None:
    behavior = HpaBehavior(policy=POLICY)
    for at in range(0, 300, 15):
        behavior.settle(at, 10, 6 if at == 150 else 2)
    assert behavior.settle(300.0, 10, 2).replicas == 6
    assert behavior.settle(450.0, 6, 2).replicas == 2


def test_failed_cycle_changes_nothing() -> None:
    behavior = HpaBehavior(policy=POLICY)
    for at in range(0, 600, 15):
        assert behavior.settle(at, 10, None).replicas == 10
    assert behavior.settle(600.0, 10, 2).replicas == 2


def test_scale_down_rate_of_one_pod_per_120_s_holds() -> None:
    down = Rules(stabilization_s=0.0, rate=RateLimit(period_s=120.0, replicas=1))
    behavior = HpaBehavior(policy=POLICY, down=down)
    behavior.settle(0.0, 5, 5)
    assert behavior.settle(15.0, 5, 1).replicas == 4
    assert behavior.settle(120.0, 4, 1).replicas == 4
    assert behavior.settle(135.0, 4, 1).replicas == 3


def test_scale_up_window_uses_the_smallest_recommendation() -> None:
    up = Rules(stabilization_s=30.0, rate=RateLimit(period_s=15.0, replicas=4, percent=100))
    behavior = HpaBehavior(policy=POLICY, up=up)
    asked = [behavior.settle(at, 3, wanted).replicas for at, wanted in ((0, 6), (15, 5), (30, 7))]
    assert asked == [3, 3, 5]


@pytest.mark.parametrize(
    ("current", "wanted", "expected"),
    [
        pytest.param(0, 5, 0, id="at zero with a floor of one the controller is off"),
        pytest.param(60, 5, 50, id="above the maximum: back to it at once"),
        pytest.param(1, 0, 1, id="never below one"),
    ],
)
def test_bounds(current: int, wanted: int, expected: int) -> None:
    assert HpaBehavior(policy=POLICY).settle(0.0, current, wanted).replicas == expected


@given(
    steps=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 80)), max_size=40),
    current=st.integers(1, 50),
)
def test_any_recommendations_stay_within_bounds_and_rates(
    steps: list[tuple[int, int]], current: int
) -> None:
    behavior, now_s = HpaBehavior(policy=POLICY), 0.0
    history = [(now_s, current)]
    for after_s, wanted in steps:
        now_s += after_s
        asked = behavior.settle(now_s, current, wanted).replicas
        assert 1 <= asked <= POLICY.max_replicas
        lowest = min([current, *(n for at, n in history if at > now_s - 15)])
        assert asked <= max(lowest + 4, 2 * lowest, current)
        current = asked
        history.append((now_s, current))
