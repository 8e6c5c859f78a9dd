"""Writes a text file atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

_MODE = 0o666


def write_atomically(path: Path, text: str) -> None:
    """Replace the file by one with this text; creates its folders.

    A reader sees the old file or the new one. An interruption leaves the old one, and no temporary
    file unless the process is killed. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _permit_as_usual(Path(name))
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _permit_as_usual(path: Path) -> None:
    """Give the temporary file, readable by its owner only, the mode of any new file."""
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(_MODE & ~umask)
