"""Reading recorded traces: accepted files, and errors."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.traces import RateTrace, RequestTrace, TraceError, load, parse

REQUESTS = "arrival_s,input_tokens,output_tokens\n0.5,10,2\n0.5,,\n7.25,3,1\n"
RATES = "t_s,requests\n0,75\n60,150\n120,0\n"


def test_a_request_level_trace_keeps_every_arrival() -> None:
    assert parse(REQUESTS, "t.csv") == RequestTrace((0.5, 0.5, 7.25))


def test_a_rate_only_trace_keeps_every_bin() -> None:
    assert parse(RATES, "t.csv") == RateTrace(60.0, (75.0, 150.0, 0.0))


def test_files_are_read_gzipped_or_plain(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_text(RATES)
    packed.write_bytes(gzip.compress(RATES.encode()))
    assert load(plain) == load(packed) == parse(RATES, "a.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv, line 1: the header is arrival_s,input_tokens,output_tokens or t_s,requests"),
        ("time,n\n0,1\n", "got 'time,n'"),
        ("arrival_s,input_tokens,output_tokens\n", "t.csv: a trace has at least one request"),
        (REQUESTS + "7.0,1,1\n", "t.csv, line 5: arrivals are sorted; 7 follows 7.25"),
        (REQUESTS + "8\n", "t.csv, line 5: a row has 3 fields; got 1"),
        (REQUESTS + "nan,1,1\n", "t.csv, line 5: field 1 is a number from 0; got 'nan'"),
        (REQUESTS + "inf,1,1\n", "t.csv, line 5: field 1 is a number from 0; got 'inf'"),
        ("t_s,requests\n0,5\n", "t.csv: at least two bins are needed to know their length"),
        (
            "t_s,requests\n10,5\n20,5\n",
            "line 2: bins must follow each other without a gap, the next at 0 s; got 10",
        ),
        ("t_s,requests\n0,5\n0,5\n", "t.csv, line 3: bins must follow each other"),
        (
            RATES + "240,1\n",
            "t.csv, line 5: bins must follow each other without a gap, the next at 180 s",
        ),
        (RATES + "180,-1\n", "t.csv, line 5: field 2 is a number from 0; got '-1'"),
        (RATES + "180,many\n", "t.csv, line 5: field 2 is a number from 0; got 'many'"),
        ('t_s,requests\n0,"5\n', "line 2: not CSV"),
    ],
)
def test_a_broken_trace_is_refused_with_file_line_and_rule(text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        parse(text, "t.csv")
    assert message in str(caught.value)


def test_a_broken_file_is_refused_by_name(tmp_path: Path) -> None:
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(RATES.encode())[:-9])
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe")
    for path in (cut, binary, tmp_path / "missing.csv"):
        with pytest.raises(TraceError, match=path.name):
            load(path)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50).map(sorted))
def test_every_sorted_list_of_arrivals_survives_the_file(arrivals: list[float]) -> None:
    text = "arrival_s,input_tokens,output_tokens\n" + "".join(f"{a!r},,\n" for a in arrivals)
    assert parse(text, "t.csv") == RequestTrace(tuple(arrivals))


@given(st.text(max_size=200))
def test_any_text_is_a_trace_or_a_trace_error(text: str) -> None:
    for header in ("", "t_s,requests\n", "arrival_s,input_tokens,output_tokens\n"):
        with contextlib.suppress(TraceError):
            parse(header + text, "t.csv")
