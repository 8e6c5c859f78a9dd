"""Reads recorded workloads from files into checked values.

Two formats, both CSV with a header, usually gzipped:

    arrival_s,input_tokens,output_tokens    one row per request, sorted by time; tokens are unused
    t_s,requests                            one row per bin: its start, its requests; none left out
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REQUEST_HEADER = ("arrival_s", "input_tokens", "output_tokens")
RATE_HEADER = ("t_s", "requests")
MAX_ROWS = 5_000_000
GZIP_MAGIC = b"\x1f\x8b"


class TraceError(Exception):
    """A file that is not a trace: names the file, the line, the rule, and what was found."""


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """Every request's arrival, in seconds from the start of the recording, sorted."""

    arrivals_s: tuple[float, ...]

    @property
    def duration_s(self) -> float:
        """Seconds from the start of the recording to its last request."""
        return self.arrivals_s[-1]


@dataclass(frozen=True, slots=True)
class RateTrace:
    """Requests per bin; the instants within a bin were not recorded."""

    bin_s: float
    requests: tuple[float, ...]

    @property
    def duration_s(self) -> float:
        """Seconds that the bins cover."""
        return self.bin_s * len(self.requests)


Trace = RequestTrace | RateTrace


def load(path: Path) -> Trace:
    """Read a trace file, gzipped or plain.

    Raises:
        TraceError: the file is missing, or breaks a rule of its format.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw).decode("ascii")
    except OSError as error:
        raise TraceError(f"{path.name}: cannot be read: {error}") from error
    except (EOFError, zlib.error) as error:
        raise TraceError(f"{path.name}: the gzip stream is broken: {error}") from error
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path.name}: a trace is ASCII text; byte {error.start} is not"
        ) from error
    return parse(text, path.name)


def parse(text: str, name: str) -> Trace:
    """Read a trace's text; `name` names the file in errors.

    Raises:
        TraceError: naming the line and the rule that it breaks.
    """
    rows = _rows(text, name)
    _, header = next(rows, (1, []))
    match tuple(header):
        case head if head == REQUEST_HEADER:
            return _requests(rows, name)
        case head if head == RATE_HEADER:
            return _rates(rows, name)
    expected = f"{','.join(REQUEST_HEADER)} or {','.join(RATE_HEADER)}"
    raise TraceError(f"{name}, line 1: the header is {expected}; got {','.join(header)!r}")


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        for row in reader:
            if reader.line_num > MAX_ROWS:
                raise TraceError(f"{name}: at most {MAX_ROWS} lines are read; cut it to a window")
            yield reader.line_num, row
    except csv.Error as error:
        raise TraceError(f"{name}, line {reader.line_num}: not CSV: {error}") from error


def _requests(rows: Iterator[tuple[int, list[str]]], name: str) -> RequestTrace:
    arrivals: list[float] = []
    for line, row in rows:
        at_s = _number(row, len(REQUEST_HEADER), 0, f"{name}, line {line}")
        if arrivals and at_s < arrivals[-1]:
            raise TraceError(
                f"{name}, line {line}: arrivals are sorted; {at_s:g} follows {arrivals[-1]:g}"
            )
        arrivals.append(at_s)
    if not arrivals:
        raise TraceError(f"{name}: a trace has at least one request")
    return RequestTrace(tuple(arrivals))


def _rates(rows: Iterator[tuple[int, list[str]]], name: str) -> RateTrace:
    starts: list[float] = []
    requests: list[float] = []
    for line, row in rows:
        where = f"{name}, line {line}"
        start_s = _number(row, len(RATE_HEADER), 0, where)
        requests.append(_number(row, len(RATE_HEADER), 1, where))
        starts.append(start_s)
        expected_s = _expected_start_s(starts)
        if not math.isclose(start_s, expected_s, abs_tol=1e-6) or expected_s < 0.0:
            raise TraceError(
                f"{where}: bins must follow each other without a gap, the next at "
                f"{abs(expected_s):g} s; got {start_s:g}"
            )
    if len(starts) < 2:
        raise TraceError(f"{name}: at least two bins are needed to know their length")
    return RateTrace(starts[1], tuple(requests))


def _expected_start_s(starts: list[float]) -> float:
    match starts:
        case [_]:
            return 0.0
        case [_, second]:
            return second if second > 0.0 else -1.0
    return starts[1] * (len(starts) - 1)


def _number(row: list[str], fields: int, index: int, where: str) -> float:
    if len(row) != fields:
        raise TraceError(f"{where}: a row has {fields} fields; got {len(row)}")
    try:
        value = float(row[index])
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise TraceError(f"{where}: field {index + 1} is a number from 0; got {row[index]!r}")
    return value
