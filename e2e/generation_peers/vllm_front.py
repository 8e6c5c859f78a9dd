"""`python -m bench vllm-front`: vLLM behind Headroom's front, compared with vLLM's own server.

Both serve one Llama of random weights with the same arguments of vLLM. They take turns: all
requests at once, for tokens per second; then the same requests one by one at random times, at a
share of what vLLM's own server takes, for the time to the first token.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import statistics
import sys
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console

from bench.figures import Figure, all_hold, at_least, at_most, shown, table
from cluster.progress import OnConsole, Progress
from free_ports import free_port
from generation_peers import engines, measuring
from generation_peers.benchmark import (
    FAILED,
    HELD,
    SMALL,
    add_load_options,
    asked_by,
    exit_status,
    random_model,
)
from generation_peers.engines import Setup
from generation_peers.lengths import Question
from generation_peers.load import Round
from generation_peers.measuring import WARM_UP, Running
from headroom_server.repository.random_llama import LlamaSize

LEAST_TIMES_OWN_RATE = 0.97
MOST_TIMES_OWN_FIRST_TOKEN = 1.0
PACED_SHARE = 0.6
"""Share of the tokens per second of vLLM's own server: a load without a lasting queue."""
LARGE = LlamaSize(
    hidden_size=2048, layers=16, heads=32, kv_heads=8, intermediate_size=8192, context_tokens=4096
)
"""A billion weights, for a GPU."""


class Turn(NamedTuple):
    """Results of one server for all requests at once, and for single ones."""

    at_once: Round
    first_tokens_s: Sequence[float]


class Turns(NamedTuple):
    """The turns of both servers, in the order in which they were taken."""

    own: Sequence[Turn]
    front: Sequence[Turn]


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and return the exit status."""
    given = _parser().parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    return exit_status(console, lambda: _compared(given, console))


def _compared(given: argparse.Namespace, console: Console) -> int:
    size, seats = (LARGE, 128) if given.gpu else (SMALL, engines.SEATS)
    asked = asked_by(given, size)
    with random_model(size) as folder:
        setup = Setup(folder=folder, context_tokens=size.context_tokens, seats=seats, gpu=given.gpu)
        turns = _measured(setup, given.vllm, asked, given.runs, OnConsole(console))
    found = figures(turns)
    device = "GPU, bfloat16" if given.gpu else "CPU, float32, one compute thread"
    title = f"{len(asked)} requests, {given.runs} turns each; {device}"
    console.print(table(title, found))
    console.print(f"[dim]load average {os.getloadavg()[0]:.1f}[/dim]")
    return HELD if all_hold(found) else FAILED


def _measured(
    setup: Setup, python: str, asked: Sequence[Question], runs: int, progress: Progress
) -> Turns:
    ports = free_port(), free_port()
    served = (
        engines.vllm(setup, python, ports[0]),
        engines.vllm_behind_our_front(setup, python, ports[1]),
    )
    with contextlib.ExitStack() as stack:
        up = []
        for engine, port in zip(served, ports, strict=True):
            with progress.step(f"Starting {engine.title}"):
                up.append(stack.enter_context(measuring.running(engine, port, setup.folder.parent)))
                up[-1].round(asked[:WARM_UP])
        with progress.step("Measuring the capacity of vLLM's own server"):
            capacity = up[0].round(asked)
        arrivals_s = arrivals(asked, PACED_SHARE * capacity.tokens / capacity.wall_s)
        turns: tuple[list[Turn], list[Turn]] = ([], [])
        for number in range(runs):
            for one, own_turns in zip(up, turns, strict=True):
                with progress.step(f"Turn {number + 1} of {runs}: {one.engine.title}"):
                    own_turns.append(_turn(one, asked, arrivals_s))
    return Turns(*turns)


def _turn(server: Running, asked: Sequence[Question], arrivals_s: Sequence[float]) -> Turn:
    at_once = server.round(asked)
    paced = server.paced(asked, arrivals_s)
    return Turn(at_once, [answer.first_token_s for answer in paced])


def arrivals(asked: Sequence[Question], tokens_per_s: float, seed: int = 1) -> Sequence[float]:
    """Return when each request comes, in seconds: a Poisson process of this mean load."""
    chance = random.Random(seed)
    mean_s = statistics.mean(one.answer_tokens for one in asked) / tokens_per_s
    return list(itertools.accumulate(chance.expovariate(1.0 / mean_s) for _ in asked))


def figures(turns: Turns) -> Sequence[Figure]:
    """Compare turn by turn: what disturbs one server disturbs the next a moment later."""
    rates = [
        own.at_once.wall_s / front.at_once.wall_s
        for own, front in zip(turns.own, turns.front, strict=True)
    ]
    cpu = [
        front.at_once.cpu_s / own.at_once.cpu_s
        for own, front in zip(turns.own, turns.front, strict=True)
    ]
    first = [
        p95(front.first_tokens_s) / p95(own.first_tokens_s)
        for own, front in zip(turns.own, turns.front, strict=True)
    ]
    return [
        shown("vLLM's own server: tokens/s; p50 and p95 of the first token", _said(turns.own)),
        shown("vLLM behind Headroom's front: the same", _said(turns.front)),
        at_least(
            "tokens/s behind Headroom's front, all at once, median of the turns",
            statistics.median(rates),
            LEAST_TIMES_OWN_RATE,
            "x",
            3,
        ),
        shown("  in each turn", _each(rates)),
        shown("  CPU seconds of all processes", f"{statistics.median(cpu):.2f}x"),
        at_most(
            "p95 of the first token, at random times, median of the turns",
            statistics.median(first),
            MOST_TIMES_OWN_FIRST_TOKEN,
            "x",
            3,
        ),
        shown("  in each turn", _each(first)),
    ]


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def _said(turns: Sequence[Turn]) -> str:
    rate = statistics.median(one.at_once.tokens / one.at_once.wall_s for one in turns)
    half_s = statistics.median(statistics.median(one.first_tokens_s) for one in turns)
    tail_s = statistics.median(p95(one.first_tokens_s) for one in turns)
    return f"{rate:.0f}; {half_s * 1000:.0f} and {tail_s * 1000:.0f} ms"


def _each(ratios: Sequence[float]) -> str:
    return ", ".join(f"{one:.2f}x" for one in ratios)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench vllm-front", description=__doc__, allow_abbrev=False
    )
    parser.add_argument(
        "--vllm",
        metavar="PYTHON",
        default=sys.executable,
        help="Python with vLLM and the model server's packages. Default: this one.",
    )
    parser.add_argument("--gpu", action="store_true", help="A billion weights on the GPU.")
    add_load_options(parser, requests=48)
    return parser
