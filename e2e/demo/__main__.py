"""`python -m demo`: replay a recorded workload, report; exits with 0 if all checks hold."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from cluster import Cluster, ClusterError, Node
from cluster.progress import OnConsole
from demo import checks, figure, plan, replay, report, stage
from demo.plan import Plan
from demo.recording import Recording
from load.messages import Message, write

HELD, FAILED, INTERRUPTED = 0, 1, 130
WIDTH_WITHOUT_TERMINAL = 140
DEFAULT_REPORT = Path("demo-report")


class ChecksFailedError(ClusterError):
    """Something that the report checks did not hold."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit status."""
    options = _parser().parse_args(argv)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(Plan(duration_s=options.duration, keep=options.keep), options.report, console)
    except ClusterError as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        console.print("Interrupted. All processes of the demo were stopped.")
        return INTERRUPTED
    return HELD


def _run(wanted: Plan, folder: Path, console: Console) -> None:
    progress, began_s = OnConsole(console), time.monotonic()
    with stage.cluster(wanted, progress) as target:
        stage.install(target, progress)
        name = stage.serve(target, progress)
        with contextlib.closing(stage.reader(target, name)) as reading:
            with progress.step("Starting the load generator"):
                replay.start_load(target, reading, name, wanted)
            recording = replay.watch(reading, name, wanted, console)
        held = _report(recording, wanted, folder, name, console)
        if wanted.keep:
            console.print(_how_to_enter(target, name), soft_wrap=True)
        elif not held:
            raise ChecksFailedError("some checks failed.")
    console.print(f"Done in {time.monotonic() - began_s:.0f} s.")
    if not held:
        raise ChecksFailedError("some checks failed; the cluster was kept.")


def _report(recording: Recording, wanted: Plan, folder: Path, name: str, console: Console) -> bool:
    """Print and write the report; return whether every check held."""
    found = checks.evaluate(
        recording,
        checks.Requirements(
            gpus=plan.GPUS,
            least_attainment=plan.LEAST_ATTAINMENT,
            last_stretch_s=plan.LAST_STRETCH_S,
            latest_send_s=plan.LATEST_SEND_S,
            longest_unanswered_s=plan.LONGEST_UNANSWERED_S,
            full_length=wanted.duration_s >= plan.DURATION_S,
        ),
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    shown = report.render(recording, found)
    console.print(shown)
    with (folder / "report.txt").open("w") as file:
        Console(file=file, width=160).print(shown)
    heard: list[Message] = [*recording.seconds, *recording.windows]
    (folder / "load.jsonl").write_text("".join(f"{write(message)}\n" for message in heard))
    if recording.started is not None and recording.during():
        picture = folder / "run.png"
        title = f"{name}: p95 below {recording.started.target_s:g} s with the fewest GPUs"
        figure.draw(recording, picture, title=title, subtitle=plan.TRACE_TITLE)
        console.print(f"\nPicture of the run: {picture.resolve()}", soft_wrap=True)
    return all(check.held for check in found)


def _how_to_enter(target: Cluster, name: str) -> str:
    kubectl = f"KUBECONFIG={target.kubeconfig} kubectl"
    end = f"kubectl delete namespace {plan.NAMESPACE}"
    if isinstance(target, Node):
        kubectl = f"{sys.executable} -m cluster kubectl --name {target.name} --"
        end = f"{sys.executable} -m cluster down --name {target.name}"
    return (
        f"\nThe cluster is up. Inspect it:\n"
        f"  {kubectl} get hisvc {name} --namespace {plan.NAMESPACE}\n"
        f"  {kubectl} describe hisvc {name} --namespace {plan.NAMESPACE}\n"
        f"Remove it:\n  {end}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__, allow_abbrev=False)
    parser.add_argument("--keep", action="store_true", help="keep the cluster at the end")
    parser.add_argument(
        "--duration",
        type=_duration_s,
        default=plan.DURATION_S,
        metavar="S",
        help="seconds of the recording to replay; a scale-down needs at least %(default)g",
    )
    parser.add_argument(
        "--report", type=Path, default=DEFAULT_REPORT, metavar="DIR", help="folder for the report"
    )
    return parser


def _duration_s(text: str) -> float:
    try:
        value_s = float(text)
    except ValueError:
        value_s = 0.0
    if not plan.SHORTEST_S <= value_s <= plan.LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"seconds from {plan.SHORTEST_S:g} to {plan.LONGEST_S:g}; got {text!r}"
        )
    return value_s


if __name__ == "__main__":
    sys.exit(main())
