"""Reads trace files (recorded workloads) line by line into validated arrays.

Two formats, both CSV with a header, plain or gzipped:

    arrival_s,input_tokens,output_tokens    one row per request, sorted by time; tokens are not used
                                            here and may be empty; the header may be just
                                            `arrival_s`, and a fourth column `block_ids` is ignored
    t_s,requests                            one row per bin: its start and its requests; bins have
                                            one length, start at 0 and have no gaps

A file of counts may have several columns with names of their own: a family of services. One of them
is read by its name, or all are summed.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import tempfile
import zlib
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

import numpy as np

from headroom.simulator.arrivals.recorded_trace import (
    RateTrace,
    RequestTrace,
    Trace,
    TraceError,
    Vector,
)

_WITH_TOKENS = "arrival_s,input_tokens,output_tokens"
REQUEST_HEADERS = (_WITH_TOKENS, "arrival_s", f"{_WITH_TOKENS},block_ids")
RATE_HEADER = "t_s,requests"
_FAMILY_HEADER = re.compile(r"t_s(,[a-z][a-z0-9_]{0,60}){2,}")
IN_MEMORY = 500_000
"""Maximum requests of a trace held in memory; longer traces use a temporary file."""
MOST_REQUESTS = 100_000_000
"""0.8 GB: 200 kB of gzip may hold as many."""
MAX_LINE = 10_000
_GZIP_MAGIC = b"\x1f\x8b"


def read_trace(
    stream: IO[bytes], name: str, column: str | None = None, most_requests: int = MOST_REQUESTS
) -> Trace:
    """Read a trace from its bytes; `name` is the file's name in errors.

    `column` names one service of a family of counts; None sums them.

    Raises:
        TraceError: names the line and the broken rule.
        OSError: the stream cannot be read.
    """
    start = stream.read(len(_GZIP_MAGIC))
    stream.seek(0)
    data: IO[bytes] = stream
    if start == _GZIP_MAGIC:
        data = io.BufferedReader(gzip.GzipFile(fileobj=stream), 1 << 17)
    lines = _lines(data, name)
    _, header = next(lines, (1, ""))
    if column is None and header in REQUEST_HEADERS:
        arrivals_s = _arrivals(lines, name, header.count(","), most_requests)
        return RequestTrace(name=name, arrivals_s=arrivals_s)
    if header == RATE_HEADER or _FAMILY_HEADER.fullmatch(header):
        columns = header.split(",")
        return _rates(lines, name, len(columns), _summed(name, columns, column))
    expected = " or ".join((*REQUEST_HEADERS, RATE_HEADER))
    raise TraceError(f"{name}, line 1: the header must be {expected}; got {header!r:.80}")


def _lines(data: IO[bytes], name: str) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        while line := data.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise TraceError(
                    f"{name}, line {number}: a line must have at most {MAX_LINE} bytes; got more"
                )
            yield number, line.decode("ascii").rstrip("\r\n")
    except UnicodeDecodeError as error:
        found = error.object[error.start]
        raise TraceError(
            f"{name}, line {number}: a trace must be ASCII text; got byte 0x{found:02x}"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(
            f"{name}, after line {number}: the gzip stream must be complete: {error}"
        ) from error


def _arrivals(lines: Iterator[tuple[int, str]], name: str, commas: int, most: int) -> Vector:
    kept = array("d")
    with ExitStack() as closing:
        spool: IO[bytes] | None = None
        for number, at_s in enumerate(_checked(lines, name, commas)):
            if number >= most:
                raise TraceError(f"{name}: a trace must have at most {most} requests; got more")
            kept.append(at_s)
            if len(kept) >= IN_MEMORY:
                spool = spool or closing.enter_context(tempfile.TemporaryFile())
                kept.tofile(spool)
                kept = array("d")
        if spool is not None:
            kept.tofile(spool)
            spool.flush()
            return np.memmap(spool, dtype=np.float64, mode="r")  # outlives the closed file
    if not kept:
        raise TraceError(f"{name}: a trace must have at least one request; got none")
    return np.frombuffer(kept, dtype=np.float64)


def _checked(lines: Iterator[tuple[int, str]], name: str, commas: int) -> Iterator[float]:
    last_s = 0.0
    for number, line in lines:
        head, *rest = line.split(",")
        tokens = ",".join(rest[:2])
        if line.count(",") != commas:
            raise _fields(name, number, commas + 1, line)
        try:
            at_s = float(head)
        except ValueError:
            at_s = math.nan
        if not last_s <= at_s < math.inf:
            raise _arrival(name, number, head, at_s, last_s)
        if tokens and not tokens.replace(",", "0", 1).isdigit():
            rule = f"tokens must be whole numbers or empty; got {tokens!r:.60}"
            raise TraceError(f"{name}, line {number}: {rule}")
        yield at_s
        last_s = at_s


def _arrival(name: str, number: int, text: str, at_s: float, last_s: float) -> TraceError:
    where = f"{name}, line {number}"
    if 0 <= at_s < last_s:
        return TraceError(f"{where}: arrivals must be sorted; got {text} after {last_s:g}")
    return TraceError(f"{where}: an arrival must be a number of seconds >= 0; got {text!r:.60}")


def _fields(name: str, number: int, wanted: int, line: str) -> TraceError:
    found = line.count(",") + 1 if line else 0
    return TraceError(f"{name}, line {number}: a row must have {wanted} fields; got {found}")


def _summed(name: str, columns: list[str], column: str | None) -> slice:
    """Return the columns of a row to sum: one, or all but the first, which is the time."""
    if column is None:
        return slice(1, None)
    if column not in columns[1:]:
        known = ", ".join(columns[1:])
        raise TraceError(f"{name}: a column must be one of {known}; got {column!r:.80}")
    index = columns.index(column, 1)
    return slice(index, index + 1)


def _rates(lines: Iterator[tuple[int, str]], name: str, width: int, summed: slice) -> RateTrace:
    requests = array("d")
    bin_s = 0.0
    for number, line in lines:
        fields = line.split(",")
        if len(fields) != width:
            raise _fields(name, number, width, line)
        numbers = [_number(name, number, text) for text in fields]
        start_s, count = numbers[0], sum(numbers[summed])
        if len(requests) == 1:
            bin_s = start_s
            if bin_s == 0:
                raise TraceError(f"{name}, line {number}: bins must be longer than 0 s; got 0")
        expected_s = bin_s * len(requests)
        if not math.isclose(start_s, expected_s, abs_tol=1e-6):
            raise TraceError(
                f"{name}, line {number}: bins must follow each other without a gap, the next at "
                f"{expected_s:g} s; got {start_s:g}"
            )
        requests.append(count)
    if len(requests) < 2:
        raise TraceError(
            f"{name}: a trace of counts must have at least two bins; got {len(requests)}"
        )
    return RateTrace(name=name, bin_s=bin_s, requests=np.frombuffer(requests, dtype=np.float64))


def _number(name: str, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise TraceError(f"{name}, line {number}: fields must be numbers >= 0; got {text!r:.60}")
    return value
