"""Load for `bench`: its requests, and how responses are read."""

from __future__ import annotations

import statistics

import pytest

from bench.server.loading import DURATIONS, NEVER_S, Load, _durations
from serverbench.generator.exchange import Answers, Status


def test_durations_have_the_mean_and_nearly_the_variation_of_the_lognormal() -> None:
    drawn = _durations(0.4)
    assert len(drawn) == DURATIONS
    assert statistics.fmean(drawn) == pytest.approx(0.4)
    assert 0.93 < statistics.pstdev(drawn) / 0.4 <= 1.0
    assert drawn == sorted(drawn)


def test_request_without_the_right_answer_never_ends() -> None:
    answers = Answers(
        due_s=(0.0, 1.0, 2.0),
        took_s=(0.5, 0.25, None),
        statuses=(200, 429, Status.LOST),
        kinds=(0, 0, 0),
        cpu_s=0.0,
        late_p99_s=0.0,
        retried=0,
        connections=1,
    )
    load = Load.of(answers)
    assert load.latencies_s == (0.5, NEVER_S, NEVER_S)
    assert (load.ok, load.requests, load.seconds) == (1, 3, 1.25)
    assert load.quantile_s(0.5) == NEVER_S
