"""Content hashes: equal inputs have equal keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

KEY_LENGTH = 20


def key_of(parts: Mapping[str, bytes | str]) -> str:
    """A short key of named parts; their order does not matter, their names do."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        part = parts[name]
        content = part.encode() if isinstance(part, str) else part
        # Lengths first, so that no two different sets of parts run together into the same bytes.
        digest.update(f"{len(name)}:{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()[:KEY_LENGTH]


def key_of_files(root: Path, files: Iterable[Path], extra: Mapping[str, str]) -> str:
    """A key of files below `root` (their relative names, mode and content) and of `extra`."""
    parts: dict[str, bytes | str] = {f"extra/{name}": value for name, value in extra.items()}
    for file in files:
        executable = "x" if file.stat().st_mode & 0o100 else "-"
        parts[f"file/{executable}/{file.relative_to(root).as_posix()}"] = file.read_bytes()
    return key_of(parts)
