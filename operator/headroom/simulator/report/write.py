"""Text to a file, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

_MODE = 0o666


def write_atomically(path: Path, text: str) -> None:
    """Replace the file by one with this text; folders on the way are made.

    A reader sees the old file or the new one. Whatever interrupts this leaves the old one, and no
    temporary file unless the process is killed. Raises OSError.
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
    """A temporary file is for its owner alone; a report is for whom any new file would be."""
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(_MODE & ~umask)
