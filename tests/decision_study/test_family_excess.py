"""What each layer of a decision adds, and the table of what that costs."""

from __future__ import annotations

import pytest

from decision_study.family import excess, excess_command
from decision_study.family.excess import LAYERS
from decision_study.family.watched import Attribution
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.stabilization import SlidingExtreme
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import Decision, Direction, Reason, Recommendation
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


def test_table_is_in_units_of_the_clairvoyant() -> None:
    hours = (6.0, *(0.0,) * (len(LAYERS) - 2), 1.5)
    cell = Attribution(cell="develop-000-jumps", attainment=0.98, gpu_hours=hours)
    grid = excess_command.table([(cell, 5.0), (cell, 10.0)])
    first, _, mean = grid.rows
    assert first[:4] == ("develop-000-jumps", "98.0", "1.50", "1.20")
    assert mean[2:4] == ("1.12", "0.90")
    assert set(mean[4:-1]) == {"-"}
