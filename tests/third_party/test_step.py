"""Evaluation of the runs of a step, without a node."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bench.node.watching import Seen, Watch
from third_party import tables
from third_party.clients import Clients, Step
from third_party.step import Measured, replica_seconds, requested_s


def watch(*changes: tuple[float, str]) -> Watch:
    return Watch([Seen(time_s, (replicas,)) for time_s, replicas in changes])


def test_replica_seconds_integrate_what_was_desired_within_the_run() -> None:
    seen = watch((90.0, "2"), (110.0, "4"), (150.0, "3"), (500.0, "9"))
    assert replica_seconds(seen, 100.0, 200.0) == 10 * 2 + 40 * 4 + 50 * 3
    assert replica_seconds(watch((0.0, "4")), 100.0, 400.0) == 1200.0


def test_requests_for_replicas_are_timed_from_the_step_and_earlier_ones_left_out() -> None:
    seen = watch((0.0, "2"), (104.0, "3"), (107.0, "6"), (150.0, "4"))
    assert requested_s(seen, 100.0) == {3: 4.0, 4: 7.0, 5: 7.0, 6: 7.0}
    assert requested_s(watch((0.0, "2")), 100.0) == {}


def test_a_step_rises_and_falls_at_once() -> None:
    step = Step(low_rps=1.0, high_rps=3.0, before_s=2, high_s=1, after_s=1)
    assert step.trace() == "t_s,requests\n0,1\n1,1\n2,3\n3,1\n"
    assert Step().duration_s == 300


@pytest.mark.parametrize(
    ("text", "words", "name"),
    [
        ("64", ["--connection-requests", "0", "--connections", "64"], "64, kept"),
        ("64/100", ["--connection-requests", "100", "--connections", "64"], "64, reopened after"),
        ("0/1", ["--connection-requests", "1"], "connections without bound, a new one per"),
    ],
)
def test_clients_are_read_from_a_word(text: str, words: list[str], name: str) -> None:
    clients = Clients.of(text)
    assert clients.words() == words
    assert str(clients).startswith(name)


def test_medians_are_shown_next_to_their_runs() -> None:
    runs = [
        Measured(
            scaler=scaler,
            clients="64, kept",
            in_time=share,
            replica_s=1200.0,
            p50_s=0.1,
            p95_s=0.2,
            refused=0,
            lost=0,
            requested_s=asked,
        )
        for scaler, share, asked in (
            ("Headroom", 0.9, {4: 6.0}),
            ("Headroom", 0.8, {}),
            ("Headroom", 0.85, {4: 8.0}),
            ("KEDA", 0.6, {4: 31.0}),
        )
    ]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(tables.medians("64, kept", runs))
    text = console.export_text()
    assert "85.0 %" in text
    assert "90.0, 80.0, 85.0" in text
    assert "6 s, never, 8 s" in text
    assert "31 s" in text
