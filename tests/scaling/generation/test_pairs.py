"""Two coupled pools: what each takes from the other, and when it removes nothing for its sake."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.generation.pools.announcing import announced, with_announced
from headroom.scaling.generation.pools.holding import reason_to_hold
from headroom.scaling.generation.pools.passing import MEMORY_S, Passing
from headroom.scaling.state.state import State
from headroom.scaling.values.partner import Partner, PoolReport, PoolRole

WELL = PoolReport(
    time_s=0.0,
    fresh=True,
    arrival_rps=10.0,
    steady_rps=10.0,
    later_rps=10.0,
    most_rps=10.0,
    replica_rps=4.0,
    needed=4,
    ready=4,
    replicas=4,
)
KNOWN = Passing(arrived=1000.0, passed=1000.0)
SHORT: dict[str, Any] = {
    "needed": 9,
    "ready": 4,
    "replicas": 9,
    "present_rps": 30.0,
    "later_rps": 30.0,
}


def partner(**changes: Any) -> Partner:
    """Return a prefill pool that says this of itself."""
    report = replace(WELL, **changes)
    return Partner(name="chat-prefill", role=PoolRole.PREFILL, report=report)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"needed": 5}, "needs 5 replicas and has 4 ready"),
        ({"missed": "p95 of time to first token 3s (target 2s)"}, "misses its promise: p95"),
        ({"fresh": False}, "metrics of the prefill pool chat-prefill are not fresh"),
        ({"replicas": 0, "ready": 0, "needed": 1}, ""),
        ({"needed": 9, "lacks_accelerators": True}, ""),
        ({"missed": "p95 3s", "lacks_accelerators": True}, ""),
        ({"fresh": False, "lacks_accelerators": True}, "are not fresh"),
    ],
    ids=["well", "short", "misses", "stale", "at zero", "waits", "misses and waits", "unseen"],
)
def test_pool_keeps_its_replicas_while_its_partner_is_not_well(
    changes: dict[str, Any], why: str
) -> None:
    found = reason_to_hold(partner(**changes))
    assert why in found
    assert bool(why) == bool(found)


def test_partner_that_lacks_accelerators_of_others_is_waited_for() -> None:
    waiting = partner(needed=9, lacks_accelerators=True)
    assert "needs 9 replicas" in reason_to_hold(replace(waiting, shares_accelerators=False))


def test_partner_that_is_not_seen_allows_no_removal() -> None:
    absent = Partner(name="gone", role=PoolRole.DECODE, absence="it does not exist")
    assert reason_to_hold(absent) == "the decode pool gone is not seen (it does not exist)"


@pytest.mark.parametrize(
    ("changes", "later_rps"),
    [
        (SHORT, 30.0),
        ({**SHORT, "later_rps": 1e9}, 36.0),
        ({**SHORT, "waiting": 120.0}, 32.0),
        ({**SHORT, "replicas": 4}, 16.0),
        ({**SHORT, "replica_rps": None}, None),
        ({**SHORT, "fresh": False}, None),
        ({"later_rps": 30.0, "present_rps": 15.0}, None),
    ],
    ids=["short", "absurd", "queue", "at its maximum", "unbounded", "stale", "passes all on"],
)
def test_prefill_pool_announces_what_its_requested_replicas_pass_on(
    changes: dict[str, Any], later_rps: float | None
) -> None:
    found = announced(partner(**changes), KNOWN, 0.0)
    assert (None if found is None else found.later_rps) == later_rps


@pytest.mark.parametrize(
    ("arrived", "passed", "factor"),
    [
        (0.0, 0.0, None),
        (40.0, 40.0, None),
        (500.0, 1000.0, 2.0),
        (1000.0, 250.0, 0.25),
        (50_000.0, 0.0, None),
        (1.0, 50_000.0, None),
        (100.0, 4000.0, None),
    ],
    ids=["new", "few", "bypassed", "given up", "unrelated", "other clients", "far apart"],
)
def test_announcement_is_scaled_by_the_share_that_was_passed_on(
    arrived: float, passed: float, factor: float | None
) -> None:
    found = announced(partner(**SHORT), Passing(arrived=arrived, passed=passed), 0.0)
    assert (None if found is None else found.later_rps) == (factor and factor * 30.0)


def test_decode_pool_announces_nothing_to_its_prefill_pool() -> None:
    assert announced(replace(partner(**SHORT), role=PoolRole.DECODE), KNOWN, 0.0) is None


def _rates(rps: float) -> Rates:
    return Rates(for_ceiling_rps=rps, for_latency_rps=rps)


def test_announcement_raises_the_forecast_and_never_lowers_it_below_what_arrives() -> None:
    own = Expected(later=_rates(12.0), most=_rates(14.0), burst_rps=None)
    raised = with_announced(own, announced(partner(**SHORT), KNOWN, 0.0), 11.0)
    assert raised.later.for_latency_rps == 30.0
    assert raised.later.occasion == " from the prefill pool chat-prefill"
    rising = Expected(later=_rates(90.0), most=_rates(90.0), burst_rps=None)
    queued = replace(KNOWN, queued_s=0.0)
    for present_rps, later_rps in ((20.0, 36.0), (50.0, 50.0)):
        cut = with_announced(rising, announced(partner(**SHORT), queued, 10.0), present_rps)
        assert cut.later.for_latency_rps == later_rps
        assert cut.most.for_latency_rps == 90.0
    after = with_announced(rising, announced(partner(**SHORT), queued, 100.0), 20.0)
    assert after.later.for_latency_rps == 90.0


def _taught(passing: Passing, begin_s: int, end_s: int, passed_rps: float, **said: Any) -> Passing:
    for now_s in range(begin_s, end_s, 2):
        passing = passing.observe(float(now_s), replace(WELL, **said), passed_rps)
    return passing


def test_share_is_learned_and_follows_a_change() -> None:
    passing = _taught(Passing(), 0, 62, 15.0)
    assert passing.share is None
    passing = _taught(passing, 62, 300, 15.0)
    assert passing.share == pytest.approx(1.5)
    passing = _taught(passing, 300, 300 + int(4 * MEMORY_S), 10.0)
    assert passing.share == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("said", [{"needed": 9}, {"fresh": False}, {"arrival_rps": None}])
def test_nothing_is_learned_of_a_pool_that_is_full_or_unseen(said: dict[str, Any]) -> None:
    known = _taught(Passing(), 0, 300, 10.0)
    later = _taught(known, 300, 900, 3.0, **said)
    assert later.share == known.share
    assert _taught(later, 900, 950, 30.0).share == known.share  # a queue is passed on


def test_share_survives_a_restart_of_the_operator_during_a_surge() -> None:
    """A full prefill pool teaches nothing, so what is not kept is not known until it is over."""
    known = _taught(Passing(), 0, 300, 15.0)
    saved = json.loads(json.dumps(State(passing=known).to_checkpoint()))
    restored = State.from_checkpoint(saved)
    passing = _taught(restored.passing, 400, 500, 15.0, **SHORT)
    found = announced(partner(**SHORT), passing, 500.0)
    assert found is not None
    assert found.later_rps == pytest.approx(1.5 * 30.0)


def test_service_that_is_no_decode_pool_saves_no_share() -> None:
    assert "passing" not in State.initial().to_checkpoint()


@pytest.mark.parametrize("numbers", [[], [1.0], [1.0, 2.0, 3.0], [1e17, 1.0], [-1.0, 1.0], "1, 2"])
def test_share_of_a_damaged_checkpoint_is_refused(numbers: object) -> None:
    damaged = {**State.initial().to_checkpoint(), "passing": numbers}
    with pytest.raises(ValueError, match="checkpoint passing must"):
        State.from_checkpoint(damaged)
