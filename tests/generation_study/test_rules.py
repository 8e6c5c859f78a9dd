"""Flaps, misses and replica-hours are attributed to rules and causes."""

from __future__ import annotations

import io
from collections import Counter

import numpy as np
import pytest
from rich.console import Console

from generation_study import misses, own_workloads, rules, rules_table
from generation_study.misses import Cause
from headroom.simulator.generation.outcome import Move

START_S = 100.0


def _move(time_s: float, before: int, after: int, reason: str) -> Move:
    return Move(time_s=time_s, before=before, after=after, reason=reason)


@pytest.mark.parametrize(("again_s", "expected"), [(160.0, 1), (161.0, 0)])
def test_flap_names_the_rule_that_removed_and_the_one_that_added(
    again_s: float, expected: int
) -> None:
    moves = [
        _move(-500.0, 3, 2, "MinReplicas"),
        _move(0.0, 5, 4, "LatencyModel"),
        _move(again_s, 4, 5, "Burst"),
    ]

    found = rules.flaps(moves, START_S)

    assert found[("LatencyModel", "Burst")] == expected
    assert found.total() == expected


def test_late_request_has_the_first_cause_that_applies() -> None:
    late = np.array([True, True, True, False])
    masks = (
        (Cause.MEMORY, np.array([True, False, False, True])),
        (Cause.START, np.array([True, True, False, True])),
        (Cause.OTHER, np.ones(4, dtype=bool)),
    )

    found = misses.first_that_applies(late, masks)

    assert found == {Cause.MEMORY: 1, Cause.START: 1, Cause.OTHER: 1}


@pytest.mark.parametrize(("factor", "changed"), [(1.2, False), (2.0, True)])
def test_mix_changes_where_requests_need_more_work_than_before(
    factor: float, changed: bool
) -> None:
    counts = np.full(240, 10.0)
    work = np.where(np.arange(240) < 180, 1.0, factor)

    found = misses.mix_changed(counts, work)

    assert not found[:180].any()
    assert bool(found[200]) == changed
    assert not found[-1] or changed


def test_more_requests_of_the_same_work_are_no_change_of_the_mix() -> None:
    counts = np.where(np.arange(240) < 180, 10.0, 30.0)

    assert not misses.mix_changed(counts, counts * 0.1).any()


def test_replica_hours_above_the_best_belong_to_the_reason_of_that_time() -> None:
    own, best = np.zeros((720, 6)), np.zeros((720, 6))
    own[:, 0] = best[:, 0] = np.arange(720) * 5.0
    own[:, misses.ALIVE], best[:, misses.ALIVE] = 4.0, 3.0
    best[600:, misses.ALIVE] = 5.0
    reasons = [(0.0, "LatencyModel"), (900.0, "ScaleDownStabilized")]

    above, below = rules.hours_by_reason(reasons, own, best)

    assert above == pytest.approx({"LatencyModel": 0.25, "ScaleDownStabilized": 2100 / 3600})
    assert below == pytest.approx(600 / 3600)


@pytest.mark.parametrize("one", own_workloads.workloads(1), ids=lambda one: one.name)
def test_own_workload_needs_the_replicas_that_it_is_scaled_to(
    one: own_workloads.Workload,
) -> None:
    assert len(one.requests) > 600
    assert one.requests.duration_s == pytest.approx(own_workloads.DURATION_S, rel=0.02)
    assert 1 <= (one.service.initial_replicas or 0) <= one.service.max_replicas


def test_one_answer_of_100_is_long_and_the_others_are_those_of_a_conversation() -> None:
    arrival_s = np.arange(20_000.0)

    prompt, output = own_workloads.rare_long_answers(arrival_s, np.random.default_rng(1))

    long = output >= 20_000
    assert 0.008 < long.mean() < 0.012
    assert output.max() <= 60_000
    assert output[~long].mean() == pytest.approx(220.0, rel=0.1)
    assert prompt.mean() == pytest.approx(1200.0, rel=0.1)


def test_unknown_workload_is_named_and_nothing_is_run() -> None:
    console = Console(file=io.StringIO(), width=200)

    code = rules_table.main(console, 1, ["family-10", "family-11"])

    assert code == 2
    assert "got family-11" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("best_kept", "shown"), [(True, "9.30 of 7.00 "), (False, "7.00 NO")])
def test_table_says_whether_the_clairvoyant_keeps_the_promises(best_kept: bool, shown: str) -> None:
    console = Console(file=io.StringIO(), width=200)
    run = rules.Rules(
        name="any",
        requests=1000,
        attainment=0.94,
        kept=False,
        flaps=Counter({("LatencyModel", "Burst"): 3}),
        causes=Counter({Cause.START: 60}),
        hours=9.3,
        best_hours=7.0,
        best_kept=best_kept,
        above={"Reserve": 2.3},
        below=0.0,
        capacities=(0.9, 1.0, 1.1),
    )

    console.print(rules_table.table([run]))

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown in text
    assert "94.00 % NO" in text
    assert "LatencyModel, Burst 3" in text
