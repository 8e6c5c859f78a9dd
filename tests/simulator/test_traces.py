"""Trace files: accepted ones, errors, and shipped ones."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.simulator.arrivals import (
    RateTrace,
    RequestTrace,
    Trace,
    TraceError,
    replay,
    steepest_rise,
)
from headroom.simulator.arrivals.trace_file import IN_MEMORY, read_trace
from headroom.simulator.traces import shipped_trace, trace_names

REQUESTS = "arrival_s,input_tokens,output_tokens\n0.5,12,7\n0.5,,\n3,1,\n"
RATES = "t_s,requests\n0,60\n60,0\n120,30.5\n"


def read(text: str | bytes, name: str = "t.csv") -> Trace:
    return read_trace(io.BytesIO(text.encode() if isinstance(text, str) else text), name)


@pytest.mark.parametrize(
    "data",
    [REQUESTS.encode(), gzip.compress(REQUESTS.encode()), REQUESTS.replace("\n", "\r\n").encode()],
    ids=["plain", "gzipped", "with carriage returns"],
)
def test_trace_of_requests_is_read(data: bytes) -> None:
    trace = read(data)
    assert isinstance(trace, RequestTrace)
    assert trace.arrivals_s.tolist() == [0.5, 0.5, 3.0]
    assert trace.duration_s == 4.0


def test_trace_of_arrivals_alone_is_read() -> None:
    trace = read("arrival_s\n0\n2.25")
    assert isinstance(trace, RequestTrace)
    assert trace.arrivals_s.tolist() == [0.0, 2.25]


def test_trace_of_rates_is_read() -> None:
    trace = read(RATES)
    assert isinstance(trace, RateTrace)
    assert (trace.bin_s, trace.requests.tolist()) == (60.0, [60.0, 0.0, 30.5])
    assert trace.duration_s == 180.0


BAD = {
    "no line": ("", "t.csv, line 1: the header must be arrival_s,input_tokens,output_tokens or"),
    "another header": ("time,n\n1,2\n", "or t_s,requests; got 'time,n'"),
    "no request": ("arrival_s\n", "t.csv: a trace must have at least one request; got none"),
    "a word": (
        "arrival_s\n1\nx\n",
        "t.csv, line 3: an arrival must be a number of seconds >= 0; got 'x'",
    ),
    "a time below 0": (
        "arrival_s\n-1\n",
        "t.csv, line 2: an arrival must be a number of seconds >= 0; got '-1'",
    ),
    "not a number": ("arrival_s\nnan\n", "line 2: an arrival must be a number of seconds >= 0"),
    "never": ("arrival_s\ninf\n", "line 2: an arrival must be a number of seconds >= 0"),
    "an empty line": (
        "arrival_s\n1\n\n2\n",
        "line 3: an arrival must be a number of seconds >= 0; got ''",
    ),
    "unsorted": ("arrival_s\n1\n2\n1.5\n", "line 4: arrivals must be sorted; got 1.5 after 2"),
    "a field missing": (
        "arrival_s,input_tokens,output_tokens\n1,2\n",
        "line 2: a row must have 3 fields; got 2",
    ),
    "half a token": (
        REQUESTS + "4,1.5,2\n",
        "line 5: tokens must be whole numbers or empty; got '1.5,2'",
    ),
    "one bin": ("t_s,requests\n0,1\n", "a trace of counts must have at least two bins; got 1"),
    "a late start": (
        "t_s,requests\n5,1\n10,1\n",
        "line 2: bins must follow each other without a gap, the next at 0 s; got 5",
    ),
    "a gap": (
        RATES + "240,1\n",
        "line 5: bins must follow each other without a gap, the next at 180 s; got 240",
    ),
    "bins without length": (
        "t_s,requests\n0,1\n0,1\n",
        "line 3: bins must be longer than 0 s; got 0",
    ),
    "requests below 0": (
        "t_s,requests\n0,1\n60,-1\n",
        "line 3: fields must be numbers >= 0; got '-1'",
    ),
    "a third field": ("t_s,requests\n0,1,2\n", "line 2: a row must have 2 fields; got 3"),
    "an endless line": (
        "arrival_s\n1" + "0" * 20_000,
        "line 2: a line must have at most 10000 bytes",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_malformed_trace_names_file_line_rule_and_value(text: str, message: str) -> None:
    with pytest.raises(TraceError) as refused:
        read(text)
    assert message in str(refused.value)
    assert str(refused.value).startswith("t.csv")


def test_trace_with_binary_or_broken_gzip_is_rejected() -> None:
    with pytest.raises(TraceError, match="line 2: a trace must be ASCII text; got byte 0xe9"):
        read(b"arrival_s\n1\xe9\n")
    whole = gzip.compress(REQUESTS.encode() * 50)
    with pytest.raises(TraceError, match="the gzip stream must be complete"):
        read(whole[:-9])
    with pytest.raises(TraceError, match="the gzip stream must be complete"):
        read(whole[:20] + b"\0" * 20 + whole[40:])


@given(st.binary(max_size=80) | st.text("arivl_s,0123456789.e-\n\r", max_size=80).map(str.encode))
def test_any_bytes_are_read_or_rejected_cleanly(data: bytes) -> None:
    for start in (b"", b"arrival_s\n", b"t_s,requests\n0,1\n", b"\x1f\x8b\x08\0"):
        duration_s, refused = 0.0, ""
        try:
            duration_s = read(start + data).duration_s
        except TraceError as error:
            refused = str(error)
        assert (duration_s > 0) != refused.startswith("t.csv")


def test_trace_with_more_requests_than_the_bound_is_refused() -> None:
    """Two hundred kilobytes of gzip may hold a hundred million."""
    text = "arrival_s\n" + "1\n" * 100
    read_trace(io.BytesIO(text.encode()), "t.csv", most_requests=100)
    with pytest.raises(TraceError, match="must have at most 99 requests"):
        read_trace(io.BytesIO(text.encode()), "t.csv", most_requests=99)


def test_trace_beyond_memory_limit_replays_the_same() -> None:
    count = IN_MEMORY + 12_345
    text = "arrival_s\n" + "\n".join(map(str, range(count)))
    trace = read(text)
    assert isinstance(trace, RequestTrace)
    assert isinstance(trace.arrivals_s, np.memmap)
    assert trace.arrivals_s.size == count
    window = replay(trace, stream="a", start_s=IN_MEMORY - 5, duration_s=10)
    assert np.concatenate(list(window.chunks(1))).tolist() == list(range(10))


SHIPPED = {
    # name: requests, seconds
    "azfunc2019_all497_60s": (3_019_309, 28_800),
    "azfunc2019_family_dev_60s": (470_610, 28_800),
    "azfunc2019_http137_60s": (53_492, 28_800),
    "azfunc2019_http_7017de4f_60s": (7_040, 28_800),
    "azfunc2019_orchestration_1f19e3ce_60s": (9_481, 28_800),
    "azfunc2019_queue_0c0c478d_60s": (51_573, 28_800),
    "azfunc2019_queue_1fa06535_60s": (273_379, 28_800),
    "azure_llm_2023_conv": (19_366, 3_502),
    "mooncake_conversation_blocks": (12_031, 3_540),
    "mooncake_conversation_spread": (12_031, 3_540),
    "servegen_deepseek_r1_600s": (1_383_669, 86_400),
    "servegen_m_large_600s": (236_892_826, 14 * 86_400),
    "servegen_mlarge_modelled_thin20_4h": (196_742, 14_400),
    "servegen_mm_image_600s": (818_610, 86_400),
    "servegen_r1_modelled_4h": (359_542, 14_400),
    "worldcup98_to_jun26_60s": (846_380_609, 57 * 86_400),
}


def test_shipped_traces_match_their_readme() -> None:
    assert set(trace_names()) == set(SHIPPED)
    for name, (requests, seconds) in SHIPPED.items():
        trace = shipped_trace(name)
        found = trace.requests.sum() if isinstance(trace, RateTrace) else trace.arrivals_s.size
        assert found == requests, name
        assert trace.duration_s == pytest.approx(seconds, abs=5), name


def test_unknown_trace_error_lists_known_ones() -> None:
    with pytest.raises(TraceError, match=r"one of azfunc2019_all497_60s, .*; got '\.\./x'"):
        shipped_trace("../x")


@pytest.mark.parametrize(
    ("name", "start_s"),
    [("worldcup98_to_jun26_60s", 4_805_520), ("servegen_m_large_600s", 840_600)],
)
def test_windows_of_shipped_scenarios_have_the_steepest_rise(name: str, start_s: float) -> None:
    trace = shipped_trace(name)
    assert isinstance(trace, RateTrace)
    assert steepest_rise(trace).start_s == start_s
