"""Recordings of vLLM: loads with their requests, times and iterations. Lines of JSON."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generation_study.fidelity.loads import Request

RECORDED = Path(__file__).with_name("vllm_cpu_0_32.jsonl.gz")
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Played:
    """One load, as vLLM played it."""

    name: str
    requests: Sequence[Request]
    first_s: Floats
    """Time when the first token of each request was generated."""
    end_s: Floats
    iterations: Floats
    """[iterations, P D KV X seconds]"""
    preempted: int

    @property
    def time_to_first_token_s(self) -> Floats:
        """Seconds to the first token, per request."""
        arrived: Floats = np.array([one.arrival_s for one in self.requests])
        return self.first_s - arrived

    @property
    def time_per_output_token_s(self) -> Floats:
        """Seconds per later token, per request with at least two tokens."""
        steps = np.array([one.output_tokens - 1 for one in self.requests])
        found: Floats = ((self.end_s - self.first_s) / np.maximum(1, steps))[steps > 0]
        return found


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recording: versions and date, and the loads."""

    about: Mapping[str, Any]
    played: Sequence[Played]


def played(name: str, requests: Iterable[Request], answer: Mapping[str, Any]) -> Played:
    """Return what vLLM's process said of a load."""
    return Played(
        name=name,
        requests=tuple(requests),
        first_s=np.array(answer["first_s"]),
        end_s=np.array(answer["end_s"]),
        iterations=np.array(answer["iterations"], dtype=float),
        preempted=answer["preempted"],
    )


def write(path: Path, recorded: Recorded) -> None:
    """Write a recording."""
    lines = [json.dumps(recorded.about)]
    for one in recorded.played:
        body = {
            "name": one.name,
            "requests": one.requests,
            "first_s": one.first_s.tolist(),
            "end_s": one.end_s.tolist(),
            "iterations": one.iterations.tolist(),
            "preempted": one.preempted,
        }
        lines.append(json.dumps(body, separators=(",", ":")))
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))


def read(path: Path = RECORDED) -> Recorded:
    """Read a recording."""
    about, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    found = []
    for line in lines:
        body = json.loads(line)
        found.append(played(body["name"], (Request(*one) for one in body["requests"]), body))
    return Recorded(about=json.loads(about), played=found)
