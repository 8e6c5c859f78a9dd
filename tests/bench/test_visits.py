"""The time at which a replica was ready is right also if the watch reports kills late."""

from __future__ import annotations

import pytest

from bench.node.visits import Life, lives
from bench.node.watching import Seen

# What the watch reported (time, Ready, deletionTimestamp), when it was killed, and the lives.
CASES = {
    "never ready": ([(1.0, "", ""), (2.0, "False", "")], [], []),
    "ready, and it stays": (
        [(1.0, "False", ""), (3.0, "True", ""), (4.0, "True", "")],
        [],
        [(3, None)],
    ),
    "asked to leave": ([(3.0, "True", ""), (7.0, "True", "t"), (9.0, "False", "t")], [], [(3, 7)]),
    "killed a tenth of a second after": (
        [(3.0, "True", ""), (3.8, "False", ""), (7.0, "True", "")],
        [3.1],
        [(3, 3.1), (7, None)],
    ),
    "killed, and the watch repeats itself before it knows": (
        [(3.0, "True", ""), (5.2, "True", ""), (5.8, "False", ""), (9.0, "True", "")],
        [5.0],
        [(3, 5), (9, None)],
    ),
    "killed while it was not ready": ([(2.0, "False", ""), (9.0, "True", "")], [5.0], [(9, None)]),
    "killed, and asked to leave before it is ready": (
        [(3.0, "True", ""), (5.8, "False", ""), (6.0, "False", "t")],
        [5.0],
        [(3, 5)],
    ),
}


@pytest.mark.parametrize(("reported", "killed_s", "expected"), CASES.values(), ids=CASES.keys())
def test_life_lasts_from_readiness_to_its_end(
    reported: list[tuple[float, str, str]],
    killed_s: list[float],
    expected: list[tuple[float, float | None]],
) -> None:
    changes = [Seen(at_s, ("a", "life", "10.0.0.1", ready, gone)) for at_s, ready, gone in reported]
    assert lives(changes, killed_s) == [Life(*one) for one in expected]
