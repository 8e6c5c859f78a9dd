"""`python -m bench [PART...]`: measure the figures with goals; exits with 0 only if all hold."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.markup import escape

import terminal
from bench import decision, simulator
from bench.figures import Figure, all_hold, table
from bench.gateway import connections as gateway
from bench.gateway import life as gateway_life
from bench.gateway import routing_hours, tenants, zero
from bench.generation import executor as generation
from bench.generation import front as generation_front
from bench.generation import overload as generation_overload
from bench.gpu import comparison as gpu
from bench.node import footprint, reaction, stage, starts
from bench.server import comparison as server
from cluster import ClusterError, Node
from cluster.progress import OnConsole, Progress
from generation_peers import command as generation_peers_command
from generation_peers import vllm_front
from semantic_cache import command as semantic_cache_command

WITH_OPTIONS: dict[str, Callable[[Sequence[str]], int]] = {
    "generation-peers": generation_peers_command.main,
    "semantic-cache": semantic_cache_command.main,
    "vllm-front": vllm_front.main,
}
HELD, FAILED, INTERRUPTED = 0, 1, 130
WIDTH_WITHOUT_TERMINAL = 120

ALONE: dict[str, Callable[[], Sequence[Figure]]] = {
    "decision": decision.measure,
    "front-generation": generation_front.measure,
    "gateway": gateway.measure,
    "generation": generation.measure,
    "gpu": gpu.measure,
    "hours": routing_hours.measure,
    "overload-generation": generation_overload.measure,
    "server": server.measure,
    "simulator": simulator.measure,
    "tenants": tenants.measure,
    "zero": zero.measure,
}
ON_A_NODE: dict[str, Callable[[Node, Progress], Sequence[Figure]]] = {
    "operator": footprint.measure,
    "reaction": reaction.measure,
    "routing": gateway_life.measure,
    "starts": starts.measure,
}
TITLES = {
    "decision": "The decision",
    "gateway": "The gateway",
    "generation": "Text generation",
    "front-generation": "The front of generated text, and its scheduler",
    "gpu": "Real models on a device",
    "overload-generation": "Text generation at 1.5 times the capacity",
    "server": "The model server",
    "simulator": "The simulator",
    "operator": "The operator",
    "reaction": "From load to more desired replicas",
    "hours": "Savings of least-request routing",
    "routing": "Requests through the gateway during changes",
    "zero": "Scale from zero behind the gateway",
    "tenants": "The effect of one tenant's flood on another tenant",
    "starts": "From more desired replicas to ready",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts that are named, or all, and return the exit status."""
    words = sys.argv[1:] if argv is None else argv
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if words and words[0] in WITH_OPTIONS:
        return WITH_OPTIONS[words[0]](words[1:])
    wanted = _parser().parse_args(words).part or [part for part in TITLES if part != "gpu"]
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    broken, promised = [], False
    try:
        for part, figures in _measured(wanted, OnConsole(console)):
            console.print(table(TITLES[part], figures))
            console.print(f"[dim]load average {os.getloadavg()[0]:.1f}[/dim]\n")
            broken += [figure.name for figure in figures if not all_hold([figure])]
            promised = promised or any(figure.holds is not None for figure in figures)
    except ClusterError as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        console.print("Interrupted. All processes of the benchmark were stopped.")
        return INTERRUPTED
    if broken:
        console.print(f"[red]Failed:[/red] {escape('; '.join(broken))}.", soft_wrap=True)
        return FAILED
    console.print(
        "[green]All figures are within their bounds.[/green]"
        if promised
        else "These figures have no bounds on this machine."
    )
    return HELD


def _measured(wanted: Sequence[str], progress: Progress) -> Iterator[tuple[str, Sequence[Figure]]]:
    """Measure one part after the other; those on a node share one."""
    for part in (part for part in ALONE if part in wanted):
        with progress.step(f"Measuring: {TITLES[part].lower()}"):
            figures = ALONE[part]()
        yield part, figures
    on_node = [part for part in ON_A_NODE if part in wanted]
    if not on_node:
        return
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(stage.node(progress))
        for part in on_node:
            yield part, ON_A_NODE[part](target, progress)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "part",
        nargs="*",
        type=_part,
        help=f"one or more of {', '.join(TITLES)}, by default all but gpu; or one of "
        f"{', '.join(WITH_OPTIONS)}, with options",
    )
    return parser


def _part(text: str) -> str:
    if text not in TITLES:
        raise argparse.ArgumentTypeError(f"part must be one of {', '.join(TITLES)}; got {text!r}")
    return text


if __name__ == "__main__":
    sys.exit(main())
