"""llm-d's SLO-aware rule and WVA's two saturation analyzers, by hand."""

from __future__ import annotations

import pytest

from headroom.simulator.autoscalers.llmd import LlmdSlo, outside_band
from headroom.simulator.autoscalers.wva import Load, WvaSaturation, WvaTokens
from headroom.simulator.plant import Server
from simulator.autoscalers.fakes_view import Flow, World, truth


@pytest.mark.parametrize(
    ("signal", "provisioned", "ready", "expected"),
    [
        pytest.param(0.55, 3, 3, 3, id="at the upper threshold: hold"),
        pytest.param(0.40, 3, 3, 3, id="at the lower threshold: hold"),
        pytest.param(1.1, 3, 3, 6, id="3 + ceil(3 (2 - 1))"),
        pytest.param(0.56, 3, 3, 4, id="3 + ceil(0.05)"),
        pytest.param(1.1, 6, 3, 6, id="half are warming: 1.1 x 0.5 is the threshold, nothing more"),
        pytest.param(2.0, 6, 3, 11, id="6 + ceil(6 (2 x 0.5 / 0.55 - 1)) = 6 + ceil(4.9)"),
        pytest.param(0.2, 4, 4, 2, id="4 - floor(4 x 0.5)"),
        pytest.param(0.39, 4, 4, 4, id="4 - floor(0.1)"),
        pytest.param(0.2, 4, 2, 2, id="down takes no credit"),
        pytest.param(0.0, 4, 4, 0, id="idle"),
        pytest.param(1.1, 3, 0, 6, id="nothing ready: no credit"),
    ],
)
def test_llmd_formula(signal: float, provisioned: int, ready: int, expected: int) -> None:
    assert outside_band(signal, (0.40, 0.55), provisioned=provisioned, ready=ready) == expected


def llmd(ratio: float, world: World, cycles: int, flow: Flow) -> list[int]:
    """Replicas asked for in each cycle of 15 s, applied at once."""
    peer, asked = LlmdSlo(truth=truth(latency_ratio=ratio)), []
    for _ in range(cycles):
        world.run(15, flow, every_s=5)
        world.replicas = world.ask(peer).replicas
        asked.append(world.replicas)
    return asked


def test_llmd_goes_up_once_30_s_of_recommendations_agree() -> None:
    world = World.of(3).run(60, Flow(rps=20), every_s=5)
    assert llmd(1.1, world, 4, Flow(rps=20)) == [3, 3, 6, 6]


def test_llmd_is_clamped_at_2_and_bursts_at_most_by_4_or_double_per_minute() -> None:
    world = World.of(3).run(60, Flow(rps=20), every_s=5)
    # Asked for 3 + ceil(3 (2 / 0.55 - 1)) = 11, granted max(3 + 4, 2 x 3) = 7; the next minute's
    # credit of 3 ready of 7 leaves 7 + ceil(7 (2 x 3/7 / 0.55 - 1)) = 11.
    assert llmd(9.0, world, 7, Flow(rps=20)) == [3, 3, 7, 7, 7, 7, 11]


def test_llmd_goes_down_by_one_per_120_s_after_180_s() -> None:
    world = World.of(5).run(60, Flow(rps=20), every_s=5)
    asked = llmd(0.2, world, 22, Flow(rps=20))
    assert asked[11] == 5  # 165 s after the first cycle, which recommended 5.
    assert asked[12:20] == [4] * 8
    assert asked[20] == 3


def test_llmd_takes_lost_metrics_for_idle() -> None:
    world = World.of(4).run(60, Flow(rps=20), every_s=5)
    peer = LlmdSlo(truth=truth(latency_ratio=0.5))
    for _ in range(60):
        world.silence(15, 5)
        world.replicas = world.ask(peer).replicas
    assert world.replicas == 1


def test_llmd_steps_of_one_drown_in_the_tolerance_of_ten_replicas() -> None:
    world = World.of(10).run(60, Flow(rps=20), every_s=5)
    assert llmd(0.56, world, 6, Flow(rps=20)) == [10] * 6  # 11 / 10 is within 0.1.


@pytest.mark.parametrize(
    ("above_floor", "expected"),
    [
        pytest.param(False, 5, id="s = 0.8: 3 + ceil(3 (0.8 / 0.55 - 1)) = 3 + ceil(1.4)"),
        pytest.param(True, 3, id="the wait: about 0.05 s of a budget of 0.1 s, inside the band"),
    ],
)
def test_llmd_above_the_floor(above_floor: bool, expected: int) -> None:
    slow = Server(fixed_s=0.15, per_item_s=0.0, max_batch=8)
    peer = LlmdSlo(
        truth=truth(latency_ratio=0.8, server=slow), above_floor=above_floor, up_stabilization_s=0
    )
    assert World.of(3).run(60, Flow(rps=20), every_s=5).ask(peer).replicas == expected


def test_llmd_thresholds_must_be_ordered() -> None:
    with pytest.raises(
        ValueError, match=r"down_threshold must be below up_threshold; got 0\.4 and 0\.4"
    ):
        LlmdSlo(truth=truth(), up_threshold=0.4)


def loads(*pairs: tuple[float, float]) -> list[Load]:
    """Running and waiting of each replica that reported."""
    return [Load(running=running, waiting=waiting) for running, waiting in pairs]


@pytest.mark.parametrize(
    ("replicas", "pending", "expected"),
    [
        pytest.param(((6.0, 1.0),) * 2, 0, 3, id="KV 0.75: spare 0.05 < 0.10"),
        pytest.param(((4.0, 2.5),) * 2, 0, 3, id="queue 2.5: spare 2.5 < 3"),
        pytest.param(((7.0, 0.0),) * 2, 0, 3, id="all saturated: no spare at all"),
        pytest.param(((7.0, 0.0), (4.0, 0.0)), 0, 2, id="of the unsaturated one 0.3 is spare"),
        pytest.param(((4.0, 1.0),) * 2, 0, 2, id="one alone would carry KV 1.0"),
        pytest.param(((1.6, 0.5),) * 3, 0, 2, id="two carry KV 0.3 and a queue of 0.75"),
        pytest.param(((1.6, 1.5),) * 3, 0, 3, id="two would queue 2.25: spare 2.75 < 3"),
        pytest.param(((5.6, 0.0),) * 2, 0, 2, id="KV 0.70: spare 0.10 is enough"),
        pytest.param(((7.0, 9.0),) * 2, 1, 3, id="pending replicas hold"),
        pytest.param(((0.0, 0.0),), 0, 1, id="the last one stays"),
    ],
)
def test_wva_v1(replicas: tuple[tuple[float, float], ...], pending: int, expected: int) -> None:
    peer = WvaSaturation(truth=truth())
    assert peer.decide(loads(*replicas), ready=len(replicas), pending=pending) == expected


@pytest.mark.parametrize(
    ("replicas", "pending", "expected"),
    [
        pytest.param(((5.0, 1.0),) * 2, 0, 3, id="12 / 0.85 - 12.8 = 1.3: one more of 6.4"),
        pytest.param(((5.0, 1.0),) * 2, 1, 3, id="a pending one is credited"),
        pytest.param(((5.0, 0.0),) * 2, 0, 2, id="10 / 0.85 < 12.8, 10 / 0.70 > 12.8: hold"),
        pytest.param(((2.0, 0.0),) * 4, 0, 2, id="25.6 - 8 / 0.70 = 14.2: two of 6.4"),
        pytest.param(((8.0, 4.0),), 0, 3, id="12 / 0.85 - 6.4 = 7.7: two more"),
        pytest.param(((4.0, 5.0),), 0, 3, id="k2 = 4: 9 / 0.85 - 4 = 6.6: two more of 4"),
        pytest.param(((0.0, 0.0),) * 3, 0, 1, id="idle: all but one"),
    ],
)
def test_wva_v2(replicas: tuple[tuple[float, float], ...], pending: int, expected: int) -> None:
    peer = WvaTokens(truth=truth())
    assert peer.decide(loads(*replicas), ready=len(replicas), pending=pending) == expected


def test_wva_v2_remembers_what_ran_while_the_queue_was_saturated() -> None:
    peer = WvaTokens(truth=truth())
    assert peer.decide(loads((7.0, 0.0), (7.0, 0.0)), ready=2, pending=0) == 3  # 16.5 - 12.8
    peer.decide(loads((3.0, 6.0)), ready=1, pending=0)
    peer.decide(loads((5.0, 6.0)), ready=1, pending=0)
    # k2 = 4: of 2 x 4 - 3.2 / 0.70 = 3.4 nothing can go; with k1 = 6.4 one of two could.
    assert peer.decide(loads((1.6, 0.0), (1.6, 0.0)), ready=2, pending=0) == 2


def test_wva_v1_through_its_hpa() -> None:
    peer, world = WvaSaturation(truth=truth()), World.of(2)
    assert world.run(60, Flow(running=6, waiting=1)).ask(peer).replicas == 3


def test_wva_v2_runs_its_optimizer_at_its_interval() -> None:
    peer, world = WvaTokens(truth=truth(), interval_s=60.0), World.of(2)
    assert world.run(60, Flow(running=5)).ask(peer).replicas == 2
    asked = [world.run(15, Flow(running=8, waiting=8)).ask(peer).replicas for _ in range(4)]
    assert asked[:3] == [2, 2, 2]
    # 32 / 0.85 - 12.8 = 24.8: four more of 6.4, and the HPA grants four at once.
    assert asked[3] == 6
