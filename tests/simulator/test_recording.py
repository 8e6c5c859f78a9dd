"""Our own recordings: written values read back, and missing ones are not zero."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy, RateLimit, Routing
from headroom.simulator.arrivals import TraceError
from headroom.simulator.arrivals.recording import RecordedService, read_recording
from headroom.telemetry.recording import header_line, service_line, tick_line

POLICY = Policy(
    latency_target_s=0.25,
    max_replicas=9,
    scale_down_rate=RateLimit(period_s=60.0, percent=50),
    routing=Routing.LEAST_IN_FLIGHT,
)
COST = CostModel(fixed_s=0.02, per_item_s=0.0015, max_batch=16)
SERVICE = service_line("shop/ranker", POLICY, COST, 61.5)


def ticks(*arrivals: int | None, every_s: float = 2.0, name: str = "shop/ranker") -> list[str]:
    return [
        tick_line(name, 1_700_000_000 + every_s * i, count, 3) for i, count in enumerate(arrivals)
    ]


def read(*lines: str) -> dict[str, RecordedService]:
    return read_recording(lines, "rec.jsonl")


def test_written_recording_reads_back() -> None:
    found = read(header_line(), SERVICE, *ticks(None, 4, 0, 7))["shop/ranker"]
    assert (found.policy, found.cost, found.cold_start_s) == (POLICY, COST, 61.5)
    assert found.edges_s.tolist() == [0, 2, 4, 6]
    assert found.counts.tolist() == [4, 0, 7]
    assert found.replicas.tolist() == [3, 3, 3, 3]
    assert found.unknown_s == 0


def test_recording_replays_count_by_count() -> None:
    counts = np.random.default_rng(1).poisson(50, 500).tolist()
    found = read(header_line(), SERVICE, *ticks(0, *counts))["shop/ranker"]
    times = np.concatenate(list(found.arrivals(stream="ranker").chunks(5)))
    assert np.histogram(times, np.arange(0, 1001, 2))[0].tolist() == counts


def test_recording_with_window_and_mean_is_cut_and_scaled() -> None:
    found = read(header_line(), SERVICE, *ticks(0, *[10] * 50, *[30] * 50))["shop/ranker"]
    arrivals = found.arrivals(stream="a", start_s=90, duration_s=20, mean_rps=100)
    assert arrivals.duration_s == 20
    assert arrivals.counts.tolist() == [10] * 5 + [30] * 5
    assert arrivals.mean_rps == pytest.approx(100)


def test_missing_counts_are_interpolated_between_rates() -> None:
    found = read(header_line(), SERVICE, *ticks(None, 10, None, None, None, 50))["shop/ranker"]
    assert found.counts.tolist() == [10, 20, 30, 40, 50]
    assert found.unknown_s == 6.0


def test_recording_of_several_services_uses_their_last_spec() -> None:
    other = service_line("shop/search", POLICY)
    newer = service_line("shop/search", Policy(latency_target_s=0.5), None, None)
    lines = [
        a
        for pair in zip(ticks(0, 5, 5), ticks(0, 9, 9, name="shop/search"), strict=True)
        for a in pair
    ]
    found = read(header_line(), SERVICE, other, *lines, newer)
    assert {name: s.counts.tolist() for name, s in found.items()} == {
        "shop/ranker": [5, 5],
        "shop/search": [9, 9],
    }
    assert found["shop/search"].policy.latency_target_s == 0.5
    assert found["shop/search"].cost is None


def test_line_torn_by_killed_writer_is_skipped() -> None:
    lines = [header_line(), SERVICE, *ticks(0, 5, 6)]
    lines[-1] = lines[-1][:-8]
    assert read(*lines)["shop/ranker"].counts.tolist() == [5]


BAD = {
    "nothing": ([], "rec.jsonl: a recording must have a service; got 0 lines without"),
    "no header": (
        [SERVICE],
        "line 1: the first line, and no other, must be of kind recording; got service",
    ),
    "a second header": (
        [header_line()] * 2,
        "line 2: the first line, and no other, must be of kind recording; got recording",
    ),
    "another version": (
        ['{"kind":"recording","version":2}\n'],
        "line 1: version must be 1; got 2",
    ),
    "no JSON": ([header_line(), "tick 5\n"], "line 2: a line must be a JSON object; got 'tick 5'"),
    "no object": ([header_line(), "[1]\n"], "line 2: a line must be a JSON object; got '[1]'"),
    "another kind": (
        [header_line(), '{"kind":"tock"}\n'],
        "line 2: kind must be recording, service or tick; got tock",
    ),
    "a tick without its service": (
        [header_line(), *ticks(1)],
        "line 2: a service's line must come before its ticks; got shop/ranker",
    ),
    "no tick": (
        [header_line(), SERVICE],
        "rec.jsonl: shop/ranker: a recording must have at least two ticks with arrivals; got 0",
    ),
    "nothing known": (
        [header_line(), SERVICE, *ticks(None, None)],
        "two ticks with arrivals; got 2 ticks",
    ),
    "time that stands still": (
        [header_line(), SERVICE, *ticks(1, 1, every_s=0)],
        "line 4: a service's ticks must come after 1700000000 s; got 1700000000",
    ),
    "arrivals below 0": (
        [header_line(), SERVICE, *ticks(-1)],
        "line 3: arrivals must be null or 0 to 10000000; got -1",
    ),
    "half a request": (
        [header_line(), SERVICE, ticks(5)[0].replace(":5,", ":5.5,")],
        "line 3: arrivals: must be a whole number; got 5.5",
    ),
    "no replicas": (
        [header_line(), SERVICE, ticks(5)[0].replace('"replicas":3', '"x":3')],
        "line 3: replicas: is required",
    ),
    "replicas below 0": (
        [header_line(), SERVICE, tick_line("shop/ranker", 0.0, 5, -1)],
        "line 3: replicas must be 0 to 1000000; got -1",
    ),
    "replicas beyond any count": (
        [header_line(), SERVICE, tick_line("shop/ranker", 0.0, 5, 2**63)],
        "line 3: replicas must be 0 to 1000000; got 9223372036854775808",
    ),
    "too deep": ([header_line(), "[" * 100_000 + "\n"], "line 2: a line"),
}


@pytest.mark.parametrize(("lines", "message"), BAD.values(), ids=BAD.keys())
def test_malformed_recording_names_line_rule_and_value(lines: list[str], message: str) -> None:
    with pytest.raises(TraceError) as refused:
        read(*lines)
    assert message in str(refused.value)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)


@given(
    key=st.sampled_from(["kind", "service", "time_s", "arrivals", "replicas", "policy", "more"]),
    value=VALUES | st.dictionaries(st.text(max_size=5), VALUES, max_size=2),
    line=st.integers(0, 4),
)
def test_recording_with_any_changed_value_reads_or_fails_cleanly(
    key: str, value: object, line: int
) -> None:
    lines = [header_line(), SERVICE, *ticks(1, 2, 3)]
    lines[line] = json.dumps(json.loads(lines[line]) | {key: value}) + "\n"
    refused = ""
    try:
        found = read(*lines)
    except TraceError as error:
        found, refused = {}, str(error)
    assert bool(found) != refused.startswith("rec.jsonl")
    assert all((service.counts >= 0).all() for service in found.values())
