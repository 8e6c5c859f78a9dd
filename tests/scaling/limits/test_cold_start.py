"""Cold starts: which are measured, which must not be, and which pods are late."""

from __future__ import annotations

import pytest

from headroom.scaling.limits.cold_start import ColdStarts, count
from headroom.scaling.values.observation import Pod, PodState
from support.fakes_scaling import sample


def pod(uid: str, state: PodState, *, scheduled_s: float | None, ready_s: float | None) -> Pod:
    return Pod(uid=uid, state=state, created_s=100.0, scheduled_s=scheduled_s, ready_s=ready_s)


def seen(
    starts: ColdStarts, pods: tuple[Pod, ...], now_s: float, *, first: bool = False
) -> ColdStarts:
    return starts.observe(pods, now_s, timeout_s=600.0, first=first)


def test_cold_start_is_measured_once_from_its_node() -> None:
    starting = (pod("a", PodState.WARMING, scheduled_s=160.0, ready_s=None),)
    ready = (pod("a", PodState.READY, scheduled_s=160.0, ready_s=172.0),)
    starts = seen(ColdStarts(), starting, 165.0, first=True)
    starts = seen(seen(starts, ready, 172.0), ready, 174.0)
    assert starts.seconds == (12.0,)  # not the minute that it waited for a node


def test_start_of_a_pod_that_replaces_another_is_measured() -> None:
    old = (pod("a", PodState.READY, scheduled_s=100.0, ready_s=110.0),)
    new = (pod("b", PodState.WARMING, scheduled_s=160.0, ready_s=None),)
    ready = (pod("b", PodState.READY, scheduled_s=160.0, ready_s=172.0),)
    starts = seen(seen(ColdStarts(), old, 111.0), new, 165.0)
    assert seen(starts, ready, 172.0).seconds == (10.0, 12.0)


@pytest.mark.parametrize(
    ("before", "first"),
    [(PodState.READY, True), (PodState.BROKEN, False)],
    ids=["ready when first seen", "broken in between"],
)
def test_cold_start_not_observed_or_failed_is_not_measured(before: PodState, first: bool) -> None:
    early = (pod("a", before, scheduled_s=100.0, ready_s=105.0),)
    late = (pod("a", PodState.READY, scheduled_s=100.0, ready_s=900.0),)
    starts = seen(seen(ColdStarts(), early, 106.0, first=first), late, 900.0)
    assert starts.seconds == ()


def test_cold_start_before_the_first_measurement_is_at_least_the_unfinished_one() -> None:
    warming = (pod("a", PodState.WARMING, scheduled_s=160.0, ready_s=None),)
    starts = seen(seen(ColdStarts(), warming, 260.0), (), 262.0)
    assert (starts.p90_s, starts.at_least_s) == (None, 100.0)  # also once it was withdrawn
    assert seen(starts, warming, 761.0).at_least_s == 100.0  # beyond the timeout it is no start
    other = (pod("b", PodState.READY, scheduled_s=700.0, ready_s=740.0),)
    assert seen(seen(starts, (), 700.0), other, 741.0).at_least_s == 40.0


def test_start_that_is_not_over_is_known_until_it_is() -> None:
    warming = (pod("a", PodState.WARMING, scheduled_s=160.0, ready_s=None),)
    starts = seen(ColdStarts(seconds=(20.0,)), warming, 260.0)
    assert (starts.underway_s, starts.p90_s, starts.at_least_s) == (100.0, 20.0, 20.0)
    assert seen(starts, warming, 761.0).underway_s == 0.0  # beyond the timeout it is no start
    assert seen(starts, (), 262.0).underway_s == 0.0
    ready = (pod("a", PodState.READY, scheduled_s=160.0, ready_s=262.0),)
    assert seen(starts, ready, 262.0).underway_s == 0.0


@pytest.mark.parametrize("state", [PodState.UNSCHEDULABLE, PodState.BROKEN, PodState.TERMINATING])
def test_pod_that_is_not_starting_changes_no_cold_start(state: PodState) -> None:
    other = (pod("a", state, scheduled_s=None, ready_s=None),)
    assert seen(ColdStarts(), other, 260.0).at_least_s == 0.0


@pytest.mark.parametrize(
    ("ready_s", "assumed_s"),
    [
        pytest.param((400.0, 430.0, 900.0), 300.0, id="the last one was not ready for a while"),
        pytest.param((), 60.0, id="none is ready"),
        pytest.param((130.0,), 60.0, id="a short one counts as a minute"),
        pytest.param((100.0,), 60.0, id="ready at once says nothing"),
        pytest.param((705.0,), 60.0, id="longer than any start may take"),
    ],
)
def test_pods_that_were_ready_first_bound_a_start_that_was_not_measured(
    ready_s: tuple[float, ...], assumed_s: float
) -> None:
    pods = tuple(
        pod(f"{at_s:g}", PodState.READY, scheduled_s=100.0, ready_s=at_s) for at_s in ready_s
    )
    starts = seen(ColdStarts(), pods, 1000.0, first=True)
    assert (starts.p90_s, starts.assumed_s) == (None, assumed_s)
    started = (*pods, pod("new", PodState.READY, scheduled_s=1100.0, ready_s=1145.0))
    assert seen(starts, started, 1146.0).assumed_s == 45.0, "a measured one is better"


def test_cold_start_without_measurement_has_no_percentile() -> None:
    assert ColdStarts().p90_s is None
    assert ColdStarts(seconds=tuple(float(n) for n in range(1, 11))).p90_s == 10.0


@pytest.mark.parametrize(
    ("age_s", "measured_s", "late"),
    [(20.0, 10.0, False), (21.0, 10.0, True), (300.0, None, False), (601.0, None, True)],
    ids=["1.5 p90 + 5 s", "beyond it", "nothing measured yet", "beyond the warm-up timeout"],
)
def test_warming_pod_is_late_after_its_limit(
    age_s: float, measured_s: float | None, late: bool
) -> None:
    pods = (pod("a", PodState.WARMING, scheduled_s=1000.0 - age_s, ready_s=None),)
    counts = count(pods, 1000.0, measured_s, 600.0)
    assert (counts.late, counts.warming) == ((1, 0) if late else (0, 1))


def test_count_includes_every_pod_once() -> None:
    pods = tuple(pod(state.value, state, scheduled_s=999.0, ready_s=None) for state in PodState)
    counts = count(pods, 1000.0, None, 600.0)
    assert counts.ready == counts.warming == counts.unschedulable == counts.broken == 1
    assert counts.terminating == 1
    assert counts.late == 0


@pytest.mark.parametrize(
    ("ready_until_s", "late"),
    [(None, True), (985.0, False), (970.0, True)],
    ids=["it never was ready", "it was 15 s ago", "it was 30 s ago"],
)
def test_pod_that_was_ready_has_as_long_to_start_again(
    ready_until_s: float | None, late: bool
) -> None:
    pods = (pod("a", PodState.WARMING, scheduled_s=100.0, ready_s=None),)
    last = {} if ready_until_s is None else {"a": sample("a", ready_until_s, 9.0)}
    counts = count(pods, 1000.0, 10.0, 600.0, last)
    assert (counts.late, counts.warming) == ((1, 0) if late else (0, 1))


def test_container_that_starts_again_while_the_operator_does_is_no_cold_start_of_hours() -> None:
    restarting = (pod("a", PodState.WARMING, scheduled_s=100.0, ready_s=None),)
    again = (pod("a", PodState.READY, scheduled_s=100.0, ready_s=36_040.0),)
    starts = seen(seen(ColdStarts(), restarting, 36_000.0, first=True), again, 36_040.0)
    assert starts.seconds == ()
