"""A copy of the project in which a bug is planted, and its tests run until one notices."""

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
"""Once and not for every bug: most of what the tests import besides the project."""
RUNNER = Path(__file__).with_name("runner.py")
PASSED, FAILED, INTERRUPTED_BY_ERRORS, NONE_FOUND = 0, 1, 2, 5
SLOWER = 5.0
"""A bug that makes the tests take so many times what they take without it is noticed by that."""
LEAST_S = 120.0


class Ran(NamedTuple):
    """How pytest ended, and what it took."""

    code: int
    cpu_s: float
    wall_s: float


class Workshop:
    """A folder of its own, gone at the end. One request at a time."""

    def __init__(self, root: Path, imported: Sequence[str] = IMPORTED) -> None:
        self._root = root
        self._imported = imported
        self._sound: dict[tuple[str, ...], Ran] = {}

    def __enter__(self) -> Self:
        """Copy what the tests read, and start what runs them.

        Modules are compiled to be found stale by their content: a bug may come and go within the
        second that a file's time is counted in.
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
        """Leave nothing behind."""
        self._runner.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def measure(self, tests: Sequence[str]) -> float:
        """Run tests without a bug, for their order and their time; return processor seconds.

        Raises RuntimeError where they do not pass: every bug would seem to be noticed.
        """
        ran = self._run(tests, learn=True)
        if ran.code != PASSED:
            raise RuntimeError(f"without any bug: {self._said()}")
        self._sound[tuple(tests)] = ran
        return ran.cpu_s

    def measures(self) -> dict[str, Any]:
        """Return what was measured, as JSON values."""
        durations = self._folder / DURATIONS
        return {
            "sound": [[list(tests), *ran] for tests, ran in self._sound.items()],
            "durations": json.loads(durations.read_text()) if durations.exists() else {},
        }

    def take(self, measures: Mapping[str, Any]) -> None:
        """Know what another workshop has measured of the same modules and tests."""
        self._sound |= {tuple(tests): Ran(*ran) for tests, *ran in measures["sound"]}
        (self._folder / DURATIONS).write_text(json.dumps(measures["durations"]))

    def has_measured(self, tests: Sequence[str]) -> bool:
        """Whether it is known that these pass without a bug."""
        return tuple(tests) in self._sound

    def notices(self, path: str, broken: str, stages: Sequence[Sequence[str]]) -> bool:
        """Plant a module's broken text, run stage after stage until a test fails, and mend it.

        Tests that do not end notice too. Raises RuntimeError where pytest could not run at all.
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
