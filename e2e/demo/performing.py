"""Runs any demo: a cluster, the shipped operator, the sample, a load, a report."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import terminal
from cluster import Cluster, ClusterError, Node
from cluster.progress import OnConsole
from demo import stage, watching
from demo.scene import Scene, Show

HELD, FAILED, INTERRUPTED = 0, 1, 130
WIDTH_WITHOUT_TERMINAL = 140


class ChecksFailedError(ClusterError):
    """Something that the report checks did not hold."""


def perform(show: Show, folder: Path) -> int:
    """Run a demo and return the exit status."""
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(show, folder, console)
    except ClusterError as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        console.print("Interrupted. All processes of the demo were stopped.")
        return INTERRUPTED
    return HELD


def add_options(parser: argparse.ArgumentParser, folder: Path) -> None:
    """Add the options of every demo."""
    parser.add_argument("--keep", action="store_true", help="keep the cluster at the end")
    parser.add_argument(
        "--report", type=Path, default=folder, metavar="DIR", help="folder for the report"
    )


def report_folder(folder: Path) -> Path:
    """Make the folder of a report, which no commit takes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    return folder


_FAILED = "some checks failed: the report above names them"


def _run(show: Show, folder: Path, console: Console) -> None:
    scene, progress, began_s = show.scene, OnConsole(console), time.monotonic()
    with stage.cluster(scene, progress) as target:
        stage.install(target, progress)
        name = stage.serve(target, scene, progress)
        with contextlib.closing(stage.reader(target, scene, name)) as reading:
            with progress.step("Starting the load"):
                show.start_load(target, reading, name)
            watching.watch(reading, show, name, console)
        held = show.conclude(name, report_folder(folder), console)
        if scene.keep:
            console.print(_how_to_enter(target, scene, name), soft_wrap=True)
        elif not held:
            raise ChecksFailedError(f"{_FAILED}.")
    console.print(f"Done in {time.monotonic() - began_s:.0f} s.")
    if not held:
        raise ChecksFailedError(f"{_FAILED}; the cluster was kept.")


def _how_to_enter(target: Cluster, scene: Scene, name: str) -> str:
    kubectl = f"KUBECONFIG={target.kubeconfig} kubectl"
    end = f"kubectl delete namespace {scene.namespace}"
    if isinstance(target, Node):
        kubectl = f"{sys.executable} -m cluster kubectl --name {target.name} --"
        end = f"{sys.executable} -m cluster down --name {target.name}"
    return (
        f"\nThe cluster is up. Inspect it:\n"
        f"  {kubectl} get hisvc {name} --namespace {scene.namespace}\n"
        f"  {kubectl} describe hisvc {name} --namespace {scene.namespace}\n"
        f"Remove it:\n  {end}"
    )
