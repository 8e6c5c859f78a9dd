"""`python -m mutation`: plant bugs from a seed one by one; 0 if the tests catch 90 % of them."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from bench.figures import all_hold, at_least, shown, table
from mutation.targets import nearest_tests, targets
from mutation.workshop import Workshop

ROOT = Path(__file__).parents[2]
TOOL = "cosmic-ray==8.7.0"
PROMISED = 90.0


class Bug(NamedTuple):
    """A module broken in one place."""

    path: str
    line: int
    operator: str
    text: str


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, plant, and report; the exit status."""
    asked = _parser().parse_args(argv)
    console = Console(highlight=False)
    console.print(f"{asked.number} bugs from seed {asked.seed}")
    files = _tracked()
    bugs = _drawn(asked.seed, asked.number, targets(files))
    survivors = _survivors(bugs, files, asked.jobs, console)
    for bug in survivors:
        console.print(f"\n[bold]not noticed[/bold] {bug.path}:{bug.line} {bug.operator}")
        console.print(escape(_difference(bug)), soft_wrap=True)
    caught = 100 * (1 - len(survivors) / len(bugs))
    figures = [
        at_least(f"seeded bugs that the tests catch, seed {asked.seed}", caught, PROMISED, " %"),
        shown("planted, not noticed", f"{len(bugs)}, {len(survivors)}"),
    ]
    console.print(table("Mutation", figures))
    return 0 if all_hold(figures) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which bugs (1)")
    parser.add_argument("--number", type=int, default=100, help="how many (100)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    return parser


def _tracked() -> list[PurePosixPath]:
    """Return the project's modules and tests."""
    done = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [PurePosixPath(line) for line in done.stdout.splitlines()]


def _drawn(seed: int, number: int, modules: Sequence[PurePosixPath]) -> list[Bug]:
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "run", "-q", "--no-project", "--python", sys.executable, "--with", TOOL]
    script = str(Path(__file__).with_name("draw.py"))
    done = subprocess.run(
        [*command, "python", script, str(seed), str(number), *map(str, modules)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | {"UV_SYSTEM_CERTS": "1"},
    )
    return [Bug(**one) for one in json.loads(done.stdout)]


def _survivors(
    bugs: Sequence[Bug], files: Sequence[PurePosixPath], jobs: int, console: Console
) -> list[Bug]:
    tests = [path for path in files if path.parts[0] == "tests" and path.stem.startswith("test_")]
    with ExitStack() as stack:
        free: SimpleQueue[Workshop] = SimpleQueue()
        for _ in range(jobs):
            free.put(stack.enter_context(Workshop(ROOT)))
        progress = stack.enter_context(Progress(console=console))
        task, lock = progress.add_task("planting", total=len(bugs)), threading.Lock()

        def noticed(bug: Bug) -> bool:
            workshop = free.get()
            try:
                return workshop.notices(
                    bug.path, bug.text, nearest_tests(PurePosixPath(bug.path), tests)
                )
            finally:
                free.put(workshop)
                with lock:
                    progress.advance(task)

        with ThreadPoolExecutor(jobs) as pool:
            verdicts = list(pool.map(noticed, bugs))
    return [bug for bug, seen in zip(bugs, verdicts, strict=True) if not seen]


def _difference(bug: Bug) -> str:
    sound = (ROOT / bug.path).read_text(encoding="utf-8")
    lines = difflib.unified_diff(sound.splitlines(), bug.text.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


if __name__ == "__main__":
    sys.exit(main())
