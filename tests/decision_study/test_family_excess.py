"""Replicas that each layer of a decision adds, and the table of their cost."""

from __future__ import annotations

import numpy as np
import pytest

from decision_study.family import excess, excess_command
from decision_study.family.excess import LAYERS
from decision_study.family.watched import Attribution, Bound
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.stabilization import SlidingExtreme
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import Decision, Recommendation
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.policy import Policy

POLICY = Policy(latency_target_s=0.2)


def decision(replicas: int, **rules: int) -> Decision:
    """A decision at 1000 s that its rules and limits lead to."""
    return Decision(
        time_s=1000.0,
        current=replicas,
        replicas=replicas,
        direction=Direction.NONE,
        reason=Reason.WITHIN_TARGET,
        message="",
        recommendations=tuple(
            Recommendation(rule=Reason[rule], replicas=number, detail="")
            for rule, number in rules.items()
        ),
    )


def highest(*entries: tuple[float, int]) -> SlidingExtreme:
    """The most replicas that were needed."""
    return SlidingExtreme(keep="largest", entries=entries)


@pytest.mark.parametrize(
    ("state", "replicas", "held", "expected"),
    [
        pytest.param(State(), 4, 4, {"carry the arrivals": 4}, id="only arrivals"),
        pytest.param(
            State(needed_high=highest((950.0, 6), (1000.0, 5))),
            6,
            7,
            {"carry the arrivals": 4, "removal margin": 1, "usual hold": 1}
            | {"starting, draining": 1},
            id="the usual hold, and a replica that drains",
        ),
        pytest.param(
            State(needed_high=highest((800.0, 6), (1000.0, 4))),
            6,
            6,
            {"carry the arrivals": 4, "no start measured": 2},
            id="a longer hold until a start was measured",
        ),
        pytest.param(
            State(
                needed_high=highest((500.0, 9), (1000.0, 4)),
                arrivals_high=highest((500.0, 9), (1000.0, 4)),
                flaps=Flaps(recent=((600.0, 8), (700.0, 8))),
            ),
            8,
            8,
            {"carry the arrivals": 4, "holds after flaps": 4},
            id="flapped replicas",
        ),
        pytest.param(
            State(needed_high=highest((1000.0, 4))),
            3,
            3,
            {"carry the arrivals": 3},
            id="maxReplicas allows less",
        ),
    ],
)
def test_layers_add_up_to_the_replicas_that_are_held(
    state: State, replicas: int, held: int, expected: dict[str, float]
) -> None:
    found = excess.added(POLICY, state, decision(replicas, LATENCY_MODEL=4), ("a",), held)
    assert sum(found) == held
    assert {name: value for name, value in zip(LAYERS, found, strict=True) if value} == expected


def test_reserve_is_apart_from_queues() -> None:
    asked = decision(7, LATENCY_MODEL=4, RESERVE=5, QUEUE_DEPTH=7)
    found = excess.added(POLICY, State(), asked, ("a",), 7)
    expected = {"carry the arrivals": 4, "reserve": 1, "queues, hidden demand": 2}
    assert {name: value for name, value in zip(LAYERS, found, strict=True) if value} == expected


@pytest.mark.parametrize(
    ("layers", "bound", "expected"),
    [
        pytest.param((3.0, 2.0, 1.0), 4.0, (0.0, 1.0, 1.0), id="the last layers are on top"),
        pytest.param((3.0, 2.0, 1.0), 0.0, (3.0, 2.0, 1.0), id="nothing below"),
        pytest.param((3.0, 2.0, 1.0), 7.0, (0.0, 0.0, 0.0), id="fewer than the bound"),
        pytest.param((3.0, 2.0, -1.0), 3.0, (0.0, 1.0, 0.0), id="a pod is not created yet"),
    ],
)
def test_above_a_bound(
    layers: tuple[float, ...], bound: float, expected: tuple[float, ...]
) -> None:
    assert excess.above(layers, bound) == expected


def test_bound_is_what_is_held_at_that_instant() -> None:
    bound = Bound(times_s=np.array([10.0, 20.0]), replicas=np.array([1.0, 3.0]))
    assert [bound.at(now_s) for now_s in (2.0, 10.0, 11.0, 99.0)] == [1.0, 1.0, 3.0, 3.0]


def test_table_is_in_units_of_the_clairvoyant() -> None:
    hours = (6.0, *(0.0,) * (len(LAYERS) - 2), 1.5)
    cells = [attribution("develop-000-jumps", hours, bound=bound) for bound in (5.0, 10.0)]
    grid = excess_command.table(cells)
    first, _, mean = grid.rows
    assert first[:4] == ("develop-000-jumps", "98.0", "1.50", "1.20")
    assert mean[2:4] == ("1.12", "0.90")
    assert set(mean[4:-1]) == {"-"}


def test_hours_above_are_summed_by_class() -> None:
    above = (0.0, 2.0, *(0.0,) * (len(LAYERS) - 2))
    names = ("develop-000-jumps", "develop-001-daily", "develop-007-jumps", "ramp/heavy/4/20s")
    grid = excess_command.above_table([attribution(name, above, above) for name in names])
    assert [row[:5] for row in grid.rows] == [
        ("daily", "1", "0.40", "-", "0.40"),
        ("jumps", "2", "0.40", "-", "0.40"),
        ("ramp", "1", "0.40", "-", "0.40"),
        ("all", "4", "0.40", "-", "0.40"),
    ]


def test_pattern_that_no_cell_matches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        excess_command.main(["--cells", "nothing*"])
    assert "no cell matches 'nothing*'; cells.py names them" in capsys.readouterr().err


def attribution(
    cell: str, hours: tuple[float, ...], above: tuple[float, ...] = (), bound: float = 5.0
) -> Attribution:
    """Return the attribution of a cell's cost."""
    return Attribution(
        cell=cell, attainment=0.98, bound_gpu_hours=bound, gpu_hours=hours, above_gpu_hours=above
    )
