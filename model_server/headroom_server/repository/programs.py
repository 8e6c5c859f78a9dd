"""Detects the kind of program in a .pt2 archive by its member names, without reading members."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO

from headroom_server.engine import LoadError
from headroom_server.repository.formats import Format


def archived(members: Iterable[str]) -> Format | None:
    """Return the kind of program with these members; None for neither."""
    parts = [set(PurePosixPath(name).parts) for name in members]
    if any("aotinductor" in one for one in parts):
        return Format.AOTINDUCTOR
    return Format.EXPORT if any({"models", "model.json"} <= one for one in parts) else None


def check_archive(file: Path | IO[bytes], kind: Format, name: str) -> None:
    """Check an archive against the declared format.

    Raises:
        LoadError: it is not an archive, or contains the other kind of program.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            found = archived(archive.namelist())
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError, NotImplementedError) as error:
        raise LoadError(
            f"{name} is not a .pt2 archive: write it with torch.export.save or "
            "aoti_compile_and_package"
        ) from error
    if found is not kind:
        holds = f"a program of format {found.value!r}" if found else "no program"
        raise LoadError(
            f"{name} contains {holds}; got format = {kind.value!r}: set format to match the file"
        )
