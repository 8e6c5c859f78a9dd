"""Plan of a load of tokens: Poisson arrivals in steps, prompts and lengths drawn by a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from load.arrivals import Replay, arrivals
from load.traces import RateTrace

STEPS = re.compile(r"(\d+)x(\d+(?:\.\d+)?)")
SPREAD = 0.5
"""Lengths are uniform within this much of their mean."""


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds at one rate."""

    seconds: int
    rate_rps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean lengths, and the number of different tokens."""

    prompt_tokens: int
    output_tokens: int
    vocabulary: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request."""

    due_s: float
    prompt: tuple[int, ...]
    output_tokens: int


def steps(text: str) -> tuple[Step, ...]:
    """Read steps such as `60x1,90x2.5`: 60 s at 1 request per second, then 90 s at 2.5.

    Raises:
        ValueError: the text is something else.
    """
    found = [STEPS.fullmatch(each.strip()) for each in text.split(",")]
    read = [Step(int(one[1]), float(one[2])) for one in found if one is not None]
    if len(read) < len(found) or not sum(one.seconds for one in read):
        raise ValueError(f"steps must be SECONDSxRATE, separated by commas; got {text!r}")
    return tuple(read)


def duration_s(wanted: Sequence[Step]) -> float:
    """Return the seconds of all steps."""
    return float(sum(one.seconds for one in wanted))


def requests(wanted: Sequence[Step], lengths: Lengths, seed: int) -> list[Wanted]:
    """Return all requests: the same for the same steps, lengths and seed, on every machine."""
    rates = tuple(one.rate_rps for one in wanted for _ in range(one.seconds))
    replay = Replay(duration_s=duration_s(wanted), seed=seed)
    chance = random.Random(seed)
    return [
        Wanted(
            due_s,
            tuple(
                chance.randrange(1, lengths.vocabulary)
                for _ in range(_drawn(chance, lengths.prompt_tokens))
            ),
            _drawn(chance, lengths.output_tokens),
        )
        for due_s in arrivals(RateTrace(1.0, rates), replay)
    ]


def _drawn(chance: random.Random, mean: int) -> int:
    return max(1, round(mean * chance.uniform(1.0 - SPREAD, 1.0 + SPREAD)))
