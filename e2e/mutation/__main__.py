"""`python -m mutation`: plant bugs from a seed one by one; 0 if the tests catch 90 % of them."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from bench.figures import all_hold, at_least, shown, table
from mutation.targets import all_tests, nearest_tests, targets
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
    survivors = []
    for bug in _survivors(bugs, files, asked.jobs, console):
        survivors.append(bug)
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
) -> Iterator[Bug]:
    """Give each bug that nothing notices, as soon as that is known."""
    tests = [path for path in files if path.parts[0] == "tests" and path.stem.startswith("test_")]
    with ExitStack() as stack:
        workshops = [stack.enter_context(Workshop(ROOT)) for _ in range(jobs)]
        for folders in {all_tests(PurePosixPath(bug.path)) for bug in bugs}:
            cpu_s = workshops[0].measure(folders)
            console.print(f"{' and '.join(folders)} pass without a bug, {cpu_s:.0f} s of CPU")
        free: SimpleQueue[Workshop] = SimpleQueue()
        for workshop in workshops:
            if workshop is not workshops[0]:
                workshop.take_measures_of(workshops[0])
            free.put(workshop)
        progress = stack.enter_context(Progress(console=console))
        task = progress.add_task("planting", total=len(bugs))

        def noticed(bug: Bug) -> bool:
            workshop = free.get()
            try:
                stages = nearest_tests(PurePosixPath(bug.path), tests)
                return workshop.notices(bug.path, bug.text, stages)
            finally:
                free.put(workshop)

        with ThreadPoolExecutor(jobs) as pool:
            for bug, seen in zip(bugs, pool.map(noticed, bugs), strict=True):
                progress.advance(task)
                if not seen:
                    yield bug


def _difference(bug: Bug) -> str:
    sound = (ROOT / bug.path).read_text(encoding="utf-8")
    lines = difflib.unified_diff(sound.splitlines(), bug.text.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


if __name__ == "__main__":
    sys.exit(main())
