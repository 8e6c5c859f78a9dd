"""`python -m mutation`: plant bugs drawn from a seed; exits 0 if the tests catch 90 % of them."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rich.console import Console
from rich.markup import escape

from bench.figures import all_hold, at_least, shown, table
from mutation.ledger import Ledger
from mutation.planting import ROOT, Bug, Planting, no_effect
from mutation.targets import targets

TOOL = "cosmic-ray==8.7.0"
PROMISED = 90.0


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
    outcomes = Planting(files, ledger, console).outcomes(bugs, asked.jobs)
    for planted, (bug, noticed) in enumerate(outcomes, start=1):
        if noticed:
            continue
        survivors += 1
        console.print(
            f"\n[bold]not noticed[/bold], {survivors} of {planted} so far: "
            f"{bug.path}:{bug.line} {bug.operator}"
        )
        console.print(escape(_difference(bug)), soft_wrap=True)
        if why := no_effect(bug):
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


def _difference(bug: Bug) -> str:
    sound = (ROOT / bug.path).read_text(encoding="utf-8")
    lines = difflib.unified_diff(sound.splitlines(), bug.text.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


if __name__ == "__main__":
    sys.exit(main())
