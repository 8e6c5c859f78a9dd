"""A copy of the project in which a bug is planted, and its tests run until one notices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

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
UNREAD = shutil.ignore_patterns("__pycache__", ".*", "traces")
LONGEST_S = 600.0
FAILED, INTERRUPTED_BY_ERRORS, MISUSED, NONE_FOUND = 1, 2, 4, 5


class Workshop:
    """A folder of its own, gone at the end."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> Self:
        """Copy what the tests read."""
        self._folder = Path(tempfile.mkdtemp(prefix="headroom-mutation-"))
        for name in COPIED:
            source = self._root / name
            if source.is_dir():
                shutil.copytree(source, self._folder / name, ignore=UNREAD)
            elif source.exists():
                shutil.copy2(source, self._folder / name)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def notices(self, path: str, broken: str, tests: Sequence[str]) -> bool:
        """Plant a module's broken text, run the tests until one fails, and mend it again.

        A test that hangs notices too. Raises RuntimeError where pytest could not run at all.
        """
        module = self._folder / path
        sound = module.read_text(encoding="utf-8")
        module.write_text(broken, encoding="utf-8")
        try:
            return self._fails(tests)
        finally:
            module.write_text(sound, encoding="utf-8")

    def _fails(self, tests: Sequence[str]) -> bool:
        sources = [
            str(self._folder / name) for name in ("operator", "model_server", "e2e", "tests")
        ]
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--timeout", "120"]
        try:
            done = subprocess.run(
                [sys.executable, "-B", "-m", "pytest", *options, *tests],
                check=False,
                cwd=self._folder,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sources)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LONGEST_S,
            )
        except subprocess.TimeoutExpired:
            return True
        if done.returncode in (MISUSED, NONE_FOUND):
            raise RuntimeError(f"no test ran: {done.stdout[-2000:]}")
        return done.returncode in (FAILED, INTERRUPTED_BY_ERRORS)
