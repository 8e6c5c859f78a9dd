"""Effect of each fault on a run, and its end."""

from __future__ import annotations

import pytest

from headroom.simulator.plant import Cluster
from headroom.simulator.scenario import FaultKind
from simulator.fakes_fleet import spec
from simulator.runs_by_hand import Direct, Scheduled, every, fault, run


@pytest.mark.parametrize(("share", "answer"), [(1.0, 0), (0.5, 2), (0.25, 3), (0.01, 3)])
def test_scrape_loss_hits_the_same_share_of_pods(share: float, answer: int) -> None:
    scaler = Direct()
    run(
        scaler,
        every(1.0, 120.0),
        fault(FaultKind.SCRAPE_LOSS, duration_s=40.0, share=share),
        service=spec(initial=4),
    )
    during = scaler.views[30:69]
    assert {len(view.samples) for view in during} == {answer}
    assert len({tuple(one.pod for one in view.samples) for view in during}) == 1
    assert {len(view.samples) for view in scaler.views[:29] + scaler.views[70:]} == {4}
    assert {len(instant) for instant in scaler.instants[30:69]} == {answer}


def test_metrics_restart_empties_store_and_restarts_scraper() -> None:
    scaler = Direct(scrape_s=20.0)
    run(scaler, every(1.0, 120.0), fault(FaultKind.METRICS_RESTART))
    assert scaler.restarted == 1
    assert [len(instant) for instant in scaler.instants[27:41]] == [2, 2, *[0] * 10, 2, 2]


def test_slow_pods_are_slow_until_fault_ends() -> None:
    # of two, one takes 4 s per request instead of 1 from 30 to 60 s, and gets one every 2 s
    outcome = run(
        Scheduled(),
        every(1.0, 120.0),
        fault(FaultKind.SLOW_PODS, duration_s=30.0, share=0.5, factor=4.0),
    )
    waiting = dict(
        zip(outcome.timeline.times_s.tolist(), outcome.timeline.waiting.tolist(), strict=True)
    )
    assert waiting[30.0] == 0
    assert waiting[60.0] == pytest.approx(15 - 7.5, abs=1.5)
    assert waiting[120.0] == 0


def test_costly_requests_take_longer_until_fault_ends() -> None:
    outcome = run(
        Scheduled(),
        every(1.0, 120.0),
        fault(FaultKind.COSTLY_REQUESTS, duration_s=30.0, factor=1.5),
    )
    p95_s = dict(
        zip(outcome.timeline.times_s.tolist(), outcome.timeline.p95_s.tolist(), strict=True)
    )
    assert p95_s[30.0] == pytest.approx(1.0, rel=0.011)
    assert p95_s[50.0] == pytest.approx(1.5, rel=0.011)
    assert p95_s[80.0] == pytest.approx(1.0, rel=0.011)


def test_slow_starts_take_longer_until_fault_ends() -> None:
    # cold starts of 30 s; twice that if they begin from 30 to 70 s: ready at 50, 120 and 110 s
    outcome = run(
        Scheduled({20.0: 3, 60.0: 4, 80.0: 5}),
        every(1.0, 180.0),
        fault(FaultKind.SLOW_STARTS, duration_s=40.0, factor=2.0),
        duration_s=180.0,
    )
    times_s, ready = outcome.timeline.times_s, outcome.timeline.ready
    first_s = [float(times_s[ready >= count][0]) for count in (3, 4, 5)]
    assert first_s == [50.0, 110.0, 120.0]
    assert outcome.score.starting_gpu_hours == pytest.approx((30 + 60 + 30) / 3600)


def test_killed_pods_are_replaced() -> None:
    outcome = run(Scheduled(), every(1.0, 120.0), fault(FaultKind.POD_KILL, share=0.5))
    timeline, times = outcome.timeline, outcome.timeline.times_s
    assert timeline.ready[times == 35.0] == 1
    assert timeline.warming[times == 35.0] == 1
    assert timeline.ready[times == 60.0] == 2
    assert outcome.score.starting_gpu_hours == pytest.approx(30 / 3600)


def test_lost_node_takes_its_gpus_until_fault_ends() -> None:
    outcome = run(
        Scheduled(),
        every(1.0, 180.0),
        fault(FaultKind.NODE_LOSS, duration_s=60.0, share=0.5),
        cluster=Cluster(gpus=2),
        duration_s=180.0,
    )
    timeline, times = outcome.timeline, outcome.timeline.times_s
    assert timeline.unschedulable[(times >= 30) & (times < 90)].tolist() == [1] * 12
    assert timeline.warming[(times >= 90) & (times < 120)].tolist() == [1] * 6
    assert timeline.ready[times >= 120].tolist() == [2] * 13
    # one pod throughout, one for 30 s, its successor from 90 s
    assert outcome.score.gpu_hours == pytest.approx((180 + 30 + 90) / 3600)
