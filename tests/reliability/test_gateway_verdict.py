"""The verdict on attacks on a gateway: lost requests are counted, and are no latency."""

from __future__ import annotations

import pytest

from bench.figures import all_hold
from bench.server.loading import NEVER_S, Load
from reliability.attacks.gateway_verdict import Noticed, Outcome

CALM = Load((0.02,) * 100, 4.0)


def load(answered_s: float, answered: int, lost: int) -> Load:
    """Requests answered, and requests lost."""
    return Load((answered_s,) * answered + (NEVER_S,) * lost, 4.0, {0: lost} if lost else {})


@pytest.mark.parametrize(
    ("attacked", "said", "holds"),
    [
        (load(0.021, 100, 0), "0 of 100", True),
        (load(0.03, 100, 0), "p95 of the answered ones: 1.50x", False),
        (load(0.02, 99, 1), "1 of 100 requests without the right answer (by status", False),
        (load(0.02, 60, 40), "p95 of the answered ones: 1.00x", False),
        (load(0.02, 0, 100), "p95 of the answered ones: none was answered", False),
    ],
    ids=["as usual", "slower", "one lost", "many lost", "all lost"],
)
def test_verdict_separates_lost_requests_from_slow_ones(
    attacked: Load, said: str, holds: bool
) -> None:
    noticed = Noticed.of(attacked, [CALM, CALM])
    assert said in noticed.words()
    assert noticed.holds is holds
    found = Outcome()
    found.add("idle", {"tenant": CALM}, {"tenant": attacked}, {"tenant": CALM})
    assert all_hold(found.figures()) is holds
    assert not any(len(one.measured) > len("not measured") for one in found.figures())


def test_an_attack_next_to_other_load_has_no_verdict_and_does_not_hold() -> None:
    found = Outcome(discarded=4, unjudged=["idle connections"])
    assert not all_hold(found.figures())
    assert "not measured" in [one.measured for one in found.figures()]
