"""`python -m mutation`: plant bugs drawn from a seed; exits 0 if the tests catch 90 % of them."""

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
from mutation.equivalent import reason
from mutation.ledger import Ledger, Measures
from mutation.sandbox import Sandbox
from mutation.targets import all_tests, nearest_tests, targets
from results import digest

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
    broken = [path for path in targets(files) if not asked.only or path.stem in asked.only]
    bugs = _drawn(asked.seed, asked.number, broken)
    ledger = Ledger(ROOT / ".bench" / f"mutation-{asked.seed}.jsonl")
    survivors, reasons = 0, list[str]()
    outcomes = _outcomes(bugs, files, asked.jobs, console, ledger)
    for planted, (bug, noticed) in enumerate(outcomes, start=1):
        if noticed:
            continue
        survivors += 1
        console.print(
            f"\n[bold]not noticed[/bold], {survivors} of {planted} so far: "
            f"{bug.path}:{bug.line} {bug.operator}"
        )
        console.print(escape(_difference(bug)), soft_wrap=True)
        if why := _why_not(bug):
            reasons.append(why)
            console.print(f"it has no effect: {why}")
    caught = 100 * (1 - survivors / len(bugs))
    figures = [
        at_least(f"seeded bugs that the tests catch, seed {asked.seed}", caught, PROMISED, " %"),
        shown("planted, not noticed", f"{len(bugs)}, {survivors}"),
        shown("of these, without any effect on behaviour", f"{len(reasons)}"),
    ]
    console.print(table("Mutation", figures))
    return 0 if all_hold(figures) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which bugs (1)")
    parser.add_argument("--number", type=int, default=100, help="how many (100)")
    parser.add_argument("--only", nargs="*", metavar="MODULE", help="only in these, by their names")
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


def _outcomes(
    bugs: Sequence[Bug],
    files: Sequence[PurePosixPath],
    jobs: int,
    console: Console,
    ledger: Ledger,
) -> Iterator[tuple[Bug, bool]]:
    """Yield each bug and whether the tests notice it, as soon as known."""
    tests = [path for path in files if path.parts[0] == "tests" and path.stem.startswith("test_")]
    every = {all_tests(PurePosixPath(bug.path)) for bug in bugs}
    digests = {
        folders: digest(
            ROOT / path for path in files if any(path.is_relative_to(one) for one in folders)
        )
        for folders in every
    }

    def known(bug: Bug) -> bool | None:
        return ledger.outcome(bug.path, bug.text, digests[all_tests(PurePosixPath(bug.path))])

    unknown = [bug for bug in bugs if known(bug) is None and not _why_not(bug)]
    with ExitStack() as stack:
        sandboxes = [stack.enter_context(Sandbox(ROOT)) for _ in range(jobs)]
        first, kept = sandboxes[0], _measures(files)
        if (before := kept.read()) is not None:
            first.take(before)
        for folders in {all_tests(PurePosixPath(bug.path)) for bug in unknown}:
            if not first.has_measured(folders):
                cpu_s = first.measure(folders)
                console.print(f"{' and '.join(folders)} pass without a bug, {cpu_s:.0f} s of CPU")
                kept.write(first.measures())
        free: SimpleQueue[Sandbox] = SimpleQueue()
        for sandbox in sandboxes:
            if sandbox is not first:
                sandbox.take(first.measures())
            free.put(sandbox)
        progress = stack.enter_context(Progress(console=console))
        task = progress.add_task("planting", total=len(bugs))

        def noticed(bug: Bug) -> bool:
            before = known(bug)
            if before is not None or _why_not(bug):
                return bool(before)
            sandbox = free.get()
            try:
                stages = nearest_tests(PurePosixPath(bug.path), tests)
                seen = sandbox.notices(bug.path, bug.text, stages)
            finally:
                free.put(sandbox)
            folders = all_tests(PurePosixPath(bug.path))
            ledger.note(bug.path, bug.text, digests[folders], noticed=seen)
            return seen

        with ThreadPoolExecutor(jobs) as pool:
            for bug, seen in zip(bugs, pool.map(noticed, bugs), strict=True):
                progress.advance(task)
                yield bug, seen


def _measures(files: Sequence[PurePosixPath]) -> Measures:
    state = digest(ROOT / path for path in files if path.parts[0] in ("operator", "tests"))
    return Measures(ROOT / ".bench" / "mutation-sound.jsonl", state)


def _why_not(bug: Bug) -> str:
    return reason(bug.path, (ROOT / bug.path).read_text(encoding="utf-8"), bug.text)


def _difference(bug: Bug) -> str:
    sound = (ROOT / bug.path).read_text(encoding="utf-8")
    lines = difflib.unified_diff(sound.splitlines(), bug.text.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


if __name__ == "__main__":
    sys.exit(main())
