"""Common part of the benchmarks of generating servers: model, questions, options, errors."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from generation_peers.lengths import Question, questions
from generation_peers.load import WrongAnswerError
from generation_peers.processes import NotStartedError
from headroom_server.repository.random_llama import LlamaSize, write_random_llama

HELD, FAILED, INTERRUPTED = 0, 1, 130
SMALL = LlamaSize(
    hidden_size=512, layers=8, heads=8, kv_heads=4, intermediate_size=1408, context_tokens=2048
)
"""24 million weights, for a CPU."""
LETTERS = 256
"""The vocabulary of a model of random weights."""


def add_load_options(parser: argparse.ArgumentParser, *, requests: int) -> None:
    """Add the options that say how much is measured."""
    parser.add_argument("--runs", type=int, default=3, help="Rounds per server. Default: 3.")
    parser.add_argument(
        "--requests",
        type=int,
        default=requests,
        help=f"Requests of a round. Default: {requests}.",
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="Recorded lengths are divided by it. Default: 1."
    )


def asked_by(given: argparse.Namespace, size: LlamaSize) -> Sequence[Question]:
    """Return the questions that the options of `add_load_options` describe."""
    return questions(
        given.requests, scale=given.scale, context_tokens=size.context_tokens, vocabulary=LETTERS
    )


@contextmanager
def random_model(size: LlamaSize) -> Iterator[Path]:
    """Write a model of random weights into a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        write_random_llama(folder, size)
        yield folder


def exit_status(console: Console, measure: Callable[[], int]) -> int:
    """Return the exit status of `measure`; say why where it ended early."""
    try:
        return measure()
    except (NotStartedError, WrongAnswerError) as error:
        console.print(f"[red]error:[/red] {error}", markup=True, soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        console.print("Interrupted. All servers were stopped.")
        return INTERRUPTED
