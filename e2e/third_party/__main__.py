"""`python -m third_party`: a step of load on an existing Deployment, scaled by each of several.

Each runs it on the same local node, in turn, each `--repeat` times; medians are side by side. The
Deployment is of a server with keep-alive connections behind a ClusterIP. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from bench.node import stage
from cluster import ClusterError, Node
from cluster.layout import Cache
from cluster.progress import OnConsole, Progress
from third_party import gateways, keda, metrics_api, tables
from third_party.clients import Clients, Step
from third_party.scalers import SCALERS, Headroom, Scaler
from third_party.step import Measured, measure

DONE, FAILED = 0, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the requested parts, and return the exit status."""
    options = _parser().parse_args(argv)
    console = Console(highlight=False)
    try:
        clients = [Clients.of(text) for text in options.clients or ("64", "0/1")]
        step = Step(before_s=options.before, high_s=options.high, after_s=options.after)
        runs = []
        for one in _runs(options, clients, step, OnConsole(console)):
            runs.append(one)
            _keep(one, options.out)
            console.print(tables.run(one), soft_wrap=True)
        for title in map(str, clients):
            own = [run for run in runs if run.clients == title]
            console.print(tables.medians(title, own))
    except (ClusterError, ValueError) as error:
        console.print(f"error: {error}", soft_wrap=True, markup=False)
        for note in getattr(error, "__notes__", ()):
            console.print(note, soft_wrap=True, markup=False)
        return FAILED
    return DONE


def _runs(
    options: argparse.Namespace, clients: Sequence[Clients], step: Step, progress: Progress
) -> Iterator[Measured]:
    names = options.scaler or ["headroom", "keda", "hpa", "static"]
    with (
        tempfile.TemporaryDirectory(prefix="headroom-peers-") as scratch,
        contextlib.ExitStack() as peers,
    ):
        programs = keda.ensure(Cache.of_this_user(), progress) if "keda" in names else None
        node = peers.enter_context(stage.node(progress))
        if "gateway" in names:
            with progress.step("Starting the gateway"):
                gateways.start(node, progress)
        if "hpa" in names or programs is not None:
            peers.enter_context(metrics_api.running(node, Path(scratch)))
        if programs is not None:
            with progress.step("Starting KEDA and Prometheus"):
                peers.enter_context(keda.running(node, programs, Path(scratch), progress))
        for turn in range(1, options.repeat + 1):
            scalers = [one for name in names for one in _scalers(name, options.max_in_flight)]
            wanted = [(scaler, one) for one in clients for scaler in scalers]
            for first in range(0, len(wanted), options.at_once):
                together = wanted[first : first + options.at_once]
                names_of = ", ".join(f"{scaler.name} ({one})" for scaler, one in together)
                with progress.step(f"Run {turn}: {names_of}"):
                    yield from _at_once(node, together, step, turn)


def _scalers(name: str, bounds: Sequence[int] | None) -> Sequence[Scaler]:
    """Return the scaler of that name; behind the gateway, one for each bound."""
    scaler = SCALERS[name]
    if not isinstance(scaler, Headroom) or not scaler.routing:
        return [scaler]
    own = [scaler] if not bounds or 0 in bounds else []
    return own + [
        replace(
            scaler,
            name=f"{scaler.name}, {most} in flight",
            routing={**scaler.routing, "maxInFlight": most},
        )
        for most in bounds or ()
        if most
    ]


def _at_once(
    node: Node, together: Sequence[tuple[Scaler, Clients]], step: Step, turn: int
) -> list[Measured]:
    """Run several at the same time, under the same noise of the machine."""
    with ThreadPoolExecutor(len(together)) as threads:
        running = [
            threads.submit(measure, node, f"step-{secrets.token_hex(3)}", *one, step, seed=turn)
            for one in together
        ]
        return [one.result() for one in running]


def _keep(one: Measured, out: Path | None) -> None:
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps(asdict(one)) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="third_party", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("verb", choices=["step"])
    add("--scaler", action="append", choices=sorted(SCALERS), help="default: all but gateway")
    add(
        "--clients",
        action="append",
        help="N or N/K: keep-alive connections (0: without bound), and the requests after which "
        "each is reopened (0: never); default: 64, and 0/1, a new connection for each request",
    )
    add("--at-once", type=int, default=1, help="runs at the same time on the one node")
    add(
        "--max-in-flight",
        type=int,
        action="append",
        help="the gateway's bound per ready replica; 0, the default: its own",
    )
    add("--before", type=int, default=100, help="seconds at 40 requests/s")
    add("--high", type=int, default=100, help="seconds at 240 requests/s")
    add("--after", type=int, default=100, help="seconds at 40 requests/s")
    add("--repeat", type=int, default=3)
    add("--out", type=Path, help="file to which each run is added, as a line of JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
