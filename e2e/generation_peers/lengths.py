"""Requests with the lengths of recorded conversations, and token numbers drawn at random."""

from __future__ import annotations

import csv
import gzip
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import headroom.simulator

AZURE = Path(headroom.simulator.__file__).parent / "traces" / "azure_llm_2023_conv.csv.gz"
"""Azure's conversations of 2023: 19 366 requests, means 1155 and 211 tokens (CC-BY 4.0)."""
ROW_STEP = 97
"""Rows are taken this far apart: neighbours in the recording resemble each other."""


class Question(NamedTuple):
    """A prompt, and how many tokens answer it."""

    prompt: tuple[int, ...]
    answer_tokens: int


def questions(
    count: int, *, scale: float, context_tokens: int, vocabulary: int
) -> Sequence[Question]:
    """Return requests whose lengths, divided by `scale`, fit the context; the same in each run."""
    chance = random.Random(1)
    fitting = (
        (prompt, answer) for prompt, answer in _scaled(scale) if prompt + answer <= context_tokens
    )
    return [
        Question(tuple(chance.randrange(1, vocabulary) for _ in range(prompt)), answer)
        for prompt, answer in itertools.islice(fitting, count)
    ]


def _scaled(scale: float) -> Iterator[tuple[int, int]]:
    with gzip.open(AZURE, "rt", encoding="ascii") as file:
        for row in itertools.islice(csv.DictReader(file), 0, None, ROW_STEP):
            lengths = (int(row["input_tokens"]), int(row["output_tokens"]))
            prompt, answer = (max(1, round(one / scale)) for one in lengths)
            yield prompt, answer
