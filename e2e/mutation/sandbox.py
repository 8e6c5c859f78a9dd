"""A copy of the project in which bugs are planted, and whose tests run until one notices."""

from __future__ import annotations

import compileall
import json
import math
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from mutation.runner import DURATIONS, OUT_OF_TIME, OUTPUT

COPIED = (
    "operator",
    "model_server",
    "e2e",
    "tests",
    "deploy",
    "charts",
    "pyproject.toml",
    "README.md",
)
UNREAD = shutil.ignore_patterns("__pycache__", ".*")
IMPORTED = ("aiohttp", "hypothesis.strategies", "numpy", "orjson", "pydantic", "yaml")
"""Imported once, not for every bug: most of the tests' dependencies."""
RUNNER = Path(__file__).with_name("runner.py")
PASSED, FAILED, INTERRUPTED_BY_ERRORS = 0, 1, 2
SLOWER = 5.0
"""A bug that slows the tests down by this factor is noticed."""
LEAST_S = 120.0


class Ran(NamedTuple):
    """The exit status and the CPU time of pytest."""

    code: int
    cpu_s: float
    wall_s: float


class Sandbox:
    """A temporary folder with a copy of the project; one request at a time."""

    def __init__(self, root: Path, imported: Sequence[str] = IMPORTED) -> None:
        self._root = root
        self._imported = imported
        self._sound: dict[tuple[str, ...], Ran] = {}

    def __enter__(self) -> Self:
        """Copy the files that the tests read, and start the runner.

        Bytecode is validated by content, because a bug may come and go within the resolution of a
        file's time.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="headroom-mutation-"))
        for name in COPIED:
            source = self._root / name
            if source.is_dir():
                shutil.copytree(source, self._folder / name, ignore=UNREAD)
            elif source.exists():
                shutil.copy2(source, self._folder / name)
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(self._folder / "operator", quiet=2, invalidation_mode=mode)
        sources = [
            str(self._folder / name) for name in ("operator", "model_server", "e2e", "tests")
        ]
        self._runner = subprocess.Popen(
            [sys.executable, str(RUNNER), *self._imported],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sources), "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the runner and delete the folder."""
        self._runner.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def measure(self, tests: Sequence[str]) -> float:
        """Run tests without a bug, to learn their times; return CPU seconds.

        Raises RuntimeError if they fail, because every bug would seem to be noticed.
        """
        ran = self._run(tests, learn=True)
        if ran.code != PASSED:
            raise RuntimeError(f"without any bug: {self._said()}")
        self._sound[tuple(tests)] = ran
        return ran.cpu_s

    def measures(self) -> dict[str, Any]:
        """Return the measurements as JSON values."""
        durations = self._folder / DURATIONS
        return {
            "sound": [[list(tests), *ran] for tests, ran in self._sound.items()],
            "durations": json.loads(durations.read_text()) if durations.exists() else {},
        }

    def take(self, measures: Mapping[str, Any]) -> None:
        """Use the measurements of another sandbox of the same modules and tests."""
        self._sound |= {tuple(tests): Ran(*ran) for tests, *ran in measures["sound"]}
        (self._folder / DURATIONS).write_text(json.dumps(measures["durations"]))

    def has_measured(self, tests: Sequence[str]) -> bool:
        """Return whether these are known to pass without a bug."""
        return tuple(tests) in self._sound

    def notices(self, path: str, broken: str, stages: Sequence[Sequence[str]]) -> bool:
        """Plant a module's mutated text, run the stages until a test fails, and restore it.

        Endless tests notice too. Raises RuntimeError if pytest could not run.
        """
        module = self._folder / path
        sound = module.read_text(encoding="utf-8")
        module.write_text(broken, encoding="utf-8")
        try:
            return any(self._fails(tests) for tests in stages)
        finally:
            module.write_text(sound, encoding="utf-8")

    def _fails(self, tests: Sequence[str]) -> bool:
        ran = self._run(tests)
        if ran.code not in (PASSED, FAILED, INTERRUPTED_BY_ERRORS, OUT_OF_TIME):
            raise RuntimeError(f"no test ran: {self._said()}")
        return ran.code != PASSED

    def _run(self, tests: Sequence[str], *, learn: bool = False) -> Ran:
        sound = self._sound.get(tuple(tests))
        asked = {
            "tests": list(tests),
            "learn": learn,
            "most_cpu_s": math.ceil(LEAST_S + SLOWER * sound.cpu_s) if sound else 3600,
            "most_wall_s": 10 * LEAST_S + SLOWER * sound.wall_s if sound else 7200.0,
        }
        assert self._runner.stdin is not None
        assert self._runner.stdout is not None
        self._runner.stdin.write(json.dumps(asked) + "\n")
        self._runner.stdin.flush()
        return Ran(**json.loads(self._runner.stdout.readline()))

    def _said(self) -> str:
        return (self._folder / OUTPUT).read_text(encoding="utf-8", errors="replace")[-2000:]
