"""Record of a run: changes and their decisions, recent load, GPU-seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demo.changes import changes
from demo.occupancy import cold_starts_s, gpu_seconds, occupancies
from demo.recording import Recording, Snapshot, arrivals_rps, decisions, recent, utilization
from load.messages import Progress, Started

Run = Callable[[], Recording]
MakeSnapshot = Callable[..., Snapshot]


def test_each_change_is_found_with_the_decision_behind_it(good_run: Run) -> None:
    found = changes(good_run().snapshots)
    assert [(c.before, c.after, c.by_operator) for c in found] == [(1, 3, True), (3, 2, True)]
    assert [c.decision and c.decision.replicas for c in found] == [3, 2]


def test_change_without_a_decision_has_no_decision(snapshot: MakeSnapshot) -> None:
    (change,) = changes([snapshot(0, 1), snapshot(1, 5, writers=["kubectl"])])
    assert not change.by_operator
    assert change.decision is None


def test_an_old_decision_does_not_explain_a_new_change(
    good_run: Run, snapshot: MakeSnapshot
) -> None:
    run = good_run()
    run.snapshots += [snapshot(100, 2), snapshot(101, 3)]
    assert changes(run.snapshots)[-1].decision is None


def test_a_decision_that_stays_in_the_status_counts_once(good_run: Run) -> None:
    run = good_run()
    run.snapshots.insert(3, run.snapshots[2])
    assert [(d.current, d.replicas) for d in decisions(run.snapshots)] == [(1, 3), (3, 2)]


def test_repeated_message_changes_nothing(good_run: Run) -> None:
    run, again = good_run(), good_run()
    run.add_messages([*again.seconds, *again.windows])
    assert run.seconds == again.seconds
    assert run.windows == again.windows


def test_recent_load_is_that_of_the_last_ten_seconds(good_run: Run) -> None:
    seconds = good_run().seconds
    assert arrivals_rps(seconds) == pytest.approx(5.0)
    assert arrivals_rps(seconds[:1]) is None
    assert recent(seconds).requests == 50
    burst = [*seconds, Progress(at_s=61.0, due=360, in_flight=0, tally=recent(seconds))]
    assert arrivals_rps(burst) == pytest.approx((360 - 255) / 10)


def test_utilization_is_arrivals_over_full_batches_of_ready_replicas(
    snapshot: MakeSnapshot,
) -> None:
    two = snapshot(0, 2, readyReplicas=2).service
    assert utilization(10.256, two) == pytest.approx(0.5, rel=1e-3)
    assert utilization(None, two) is None
    assert utilization(5.0, snapshot(0, 2, readyReplicas=0).service) is None


def test_gpu_seconds_run_from_creation_to_the_first_snapshot_without_the_pod(good_run: Run) -> None:
    run = good_run()
    holds = occupancies(run.snapshots, run.start_s, run.end_s)
    by_name = {
        hold.pod.name: (run.since_start_s(hold.from_s), run.since_start_s(hold.to_s))
        for hold in holds
    }
    assert by_name == {"demo-a": (0, 60), "demo-b": (10, 60), "demo-c": (10, 45)}
    assert gpu_seconds(holds) == 60 + 50 + 35


def test_pods_from_before_and_after_the_replay_cost_it_nothing(good_run: Run) -> None:
    run = good_run()
    assert occupancies(run.snapshots, run.start_s + 1000, run.end_s + 1000) != []
    run.started = Started(unix_s=run.start_s - 100, requests=1, duration_s=50.0, target_s=1.5)
    assert occupancies(run.snapshots, run.start_s, run.end_s) == []


def test_cold_starts_are_those_of_pods_made_during_the_replay(good_run: Run) -> None:
    run = good_run()
    assert cold_starts_s(run.snapshots, run.start_s) == [8.0, 9.0]
