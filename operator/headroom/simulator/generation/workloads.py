"""Workloads with tokens: recorded traces, llm-d's published stages, and drawn ones."""

from __future__ import annotations

import csv
import gzip
import io
from functools import lru_cache
from importlib.resources import files

import numpy as np

from headroom.simulator.generation.requests import Floats, Ints, Requests

_TRACES = "headroom.simulator.traces"
LLMD_STAGES = ((2, 330), (4, 360), (6, 360), (8, 360), (10, 360), (4, 360), (1, 300))
"""Requests per second, seconds: llm-d/llm-d guides/workload-autoscaling/README.slo-aware.md."""
LLMD_PROMPT, LLMD_OUTPUT = 4000, 1000


@lru_cache(maxsize=8)
def traced(name: str) -> Requests:
    """Return a shipped trace that has tokens; block ids where it has them."""
    with files(_TRACES).joinpath(f"{name}.csv.gz").open("rb") as stream:
        text = io.TextIOWrapper(gzip.GzipFile(fileobj=stream), encoding="ascii")
        rows = list(csv.reader(text))
    header, rows = rows[0], rows[1:]
    wanted = ["arrival_s", "input_tokens", "output_tokens"]
    if header[:3] != wanted:
        raise ValueError(f"{name}: a trace with tokens must begin with {','.join(wanted)}")
    ids = [np.fromstring(row[3], dtype=np.int64, sep=" ") for row in rows] if header[3:] else []
    lengths = np.array([len(each) for each in ids], dtype=np.int64)
    empty = np.zeros(0, dtype=np.int64)
    return Requests(
        arrival_s=np.array([float(row[0]) for row in rows]),
        prompt_tokens=np.maximum(1, np.array([int(row[1]) for row in rows])),
        output_tokens=np.maximum(1, np.array([int(row[2]) for row in rows])),
        block_ids=np.concatenate(ids) if ids else empty,
        block_starts=np.concatenate(([0], np.cumsum(lengths))) if ids else empty,
    )


def llmd_stages() -> Requests:
    """Return llm-d's stages: 12,480 requests at constant rates."""
    pieces, start_s = [], 0.0
    for rate, seconds in LLMD_STAGES:
        pieces.append(start_s + np.arange(rate * seconds) / rate)
        start_s += seconds
    arrival_s = np.concatenate(pieces)
    return Requests(
        arrival_s=arrival_s,
        prompt_tokens=np.full(len(arrival_s), LLMD_PROMPT),
        output_tokens=np.full(len(arrival_s), LLMD_OUTPUT),
    )


def poisson(rates_rps: Floats, bin_s: float, seed: int) -> Floats:
    """Return arrivals of a Poisson process with one rate per bin."""
    random = np.random.default_rng(seed)
    counts = random.poisson(rates_rps * bin_s)
    starts = np.repeat(np.arange(len(rates_rps)) * bin_s, counts)
    arrival_s: Floats = np.sort(starts + random.uniform(0.0, bin_s, len(starts)))
    return arrival_s


def lognormal_lengths(mean: Floats, cv: float, random: np.random.Generator) -> Ints:
    """Return whole lengths of at least 1 with these means and this coefficient of variation."""
    variance = np.log(1.0 + cv * cv)
    drawn = np.exp(np.sqrt(variance) * random.standard_normal(len(mean)) - variance / 2.0)
    lengths: Ints = np.maximum(1, np.rint(mean * drawn)).astype(np.int64)
    return lengths
