"""Opens files of a model: regular files within its folder, and reads them up to a bound.

The owner of a model's folder may put links and pipes there. A link may lead anywhere in the folder
(mounts of ConfigMaps consist of links), and from a snapshot in the cache of the Hugging Face hub to
the files of the same model:

    models--<owner>--<name>/snapshots/<revision>/<file>  ->  ../../blobs/<digest>
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from headroom_server.engine import LoadError

MOST_JSON_BYTES = 64 << 20
"""Largest size of a file of JSON; the index of a model with 200 000 tensors has 25 MB."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def inside(root: Path, path: Path) -> Path:
    """Return the path with links resolved, if it exists inside the folder `root`.

    Raises:
        LoadError: with only the last part of the path, because the rest reveals locations.
    """
    try:
        root, resolved = root.resolve(strict=True), path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise LoadError(f"{path.name} does not exist or cannot be read: add the file") from error
    if not resolved.is_relative_to(root) and resolved.parent != _blobs(root):
        raise LoadError(
            f"{path.name} must be inside the repository or the model's folder; got a link that "
            "leads outside: copy what it leads to"
        )
    return resolved


def _blobs(root: Path) -> Path | None:
    """Return where the hub's cache has the files of a snapshot; None for another folder."""
    model = root.parent.parent
    cached = root.parent.name == "snapshots" and model.name.startswith("models--")
    return model / "blobs" if cached else None


def regular(root: Path, path: Path) -> Path:
    """Return the resolved path of a regular file inside `root`, for a library that opens it.

    Raises:
        LoadError: it is missing, outside, not a regular file, or cannot be read.
    """
    resolved = inside(root, path)
    _open(resolved, path.name).close()
    return resolved


def read(root: Path, path: Path, most_bytes: int) -> bytes | None:
    """Return what is in a regular file inside `root`; None if there is no entry of this name.

    Raises:
        LoadError: it is outside, not a regular file, too large, or cannot be read.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LoadError(f"{path.name} cannot be read: {error.strerror}") from error
    with _open(inside(root, path), path.name) as file:
        try:
            data = file.read(most_bytes + 1)
        except OSError as error:
            raise LoadError(f"{path.name} cannot be read: {error.strerror}") from error
    if len(data) > most_bytes:
        raise LoadError(
            f"{path.name} must have at most {most_bytes} bytes; got more: replace it by the "
            "file that was published"
        )
    return data


def _open(resolved: Path, name: str) -> BinaryIO:
    """Open without waiting for a writer, then see what was opened."""
    try:
        descriptor = os.open(resolved, _FLAGS)
    except OSError as error:
        raise LoadError(f"{name} cannot be read: {error.strerror}") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        found = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "another kind")
        raise LoadError(f"{name} must be a regular file; got {found}: replace it by the file")
    return os.fdopen(descriptor, "rb")
