"""Plants bugs in copies of the tree, several at a time, and asks whether the tests notice them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from mutation.equivalent import reason
from mutation.ledger import Ledger, Measures
from mutation.sandbox import Sandbox
from mutation.targets import all_tests, nearest_tests
from results import digest

ROOT = Path(__file__).parents[2]


class Bug(NamedTuple):
    """A module broken in one place."""

    path: str
    line: int
    operator: str
    text: str


def no_effect(bug: Bug) -> str:
    """Return why a bug changes no behaviour; empty if it may."""
    return reason(bug.path, (ROOT / bug.path).read_text(encoding="utf-8"), bug.text)


class Planting:
    """The outcomes of bugs in these modules; those of the ledger are not found again."""

    def __init__(self, files: Sequence[PurePosixPath], ledger: Ledger, console: Console) -> None:
        self._files, self._ledger, self._console = files, ledger, console
        self._tests = [
            path for path in files if path.parts[0] == "tests" and path.stem.startswith("test_")
        ]
        self._digests: dict[tuple[str, ...], str] = {}
        self._free: SimpleQueue[Sandbox] = SimpleQueue()

    def outcomes(self, bugs: Sequence[Bug], jobs: int) -> Iterator[tuple[Bug, bool]]:
        """Yield each bug and whether the tests notice it, as soon as known."""
        for bug in bugs:
            self._digest_for(bug)
        unknown = [bug for bug in bugs if self._known(bug) is None and not no_effect(bug)]
        with ExitStack() as stack:
            sandboxes = [stack.enter_context(Sandbox(ROOT)) for _ in range(jobs)]
            self._measure(sandboxes[0], unknown)
            for sandbox in sandboxes:
                if sandbox is not sandboxes[0]:
                    sandbox.take(sandboxes[0].measures())
                self._free.put(sandbox)
            progress = stack.enter_context(Progress(console=self._console))
            task = progress.add_task("planting", total=len(bugs))
            with ThreadPoolExecutor(jobs) as pool:
                for bug, seen in zip(bugs, pool.map(self._noticed, bugs), strict=True):
                    progress.advance(task)
                    yield bug, seen

    def _measure(self, sandbox: Sandbox, bugs: Sequence[Bug]) -> None:
        """Run the tests without a bug, for how long they take; kept until a source changes."""
        state = digest(
            ROOT / path for path in self._files if path.parts[0] in ("operator", "tests")
        )
        kept = Measures(ROOT / ".bench" / "mutation-sound.jsonl", state)
        if (before := kept.read()) is not None:
            sandbox.take(before)
        for folders in {all_tests(PurePosixPath(bug.path)) for bug in bugs}:
            if not sandbox.has_measured(folders):
                cpu_s = sandbox.measure(folders)
                self._console.print(
                    f"{' and '.join(folders)} pass without a bug, {cpu_s:.0f} s of CPU"
                )
                kept.write(sandbox.measures())

    def _noticed(self, bug: Bug) -> bool:
        before = self._known(bug)
        if before is not None or no_effect(bug):
            return bool(before)
        sandbox = self._free.get()
        try:
            stages = nearest_tests(PurePosixPath(bug.path), self._tests)
            seen = sandbox.notices(bug.path, bug.text, stages)
        finally:
            self._free.put(sandbox)
        self._ledger.note(bug.path, bug.text, self._digest_for(bug), noticed=seen)
        return seen

    def _known(self, bug: Bug) -> bool | None:
        return self._ledger.outcome(bug.path, bug.text, self._digest_for(bug))

    def _digest_for(self, bug: Bug) -> str:
        """Return the digest of the sources and tests that decide this outcome."""
        folders = all_tests(PurePosixPath(bug.path))
        if folders not in self._digests:
            self._digests[folders] = digest(
                ROOT / path
                for path in self._files
                if any(path.is_relative_to(one) for one in folders)
            )
        return self._digests[folders]
