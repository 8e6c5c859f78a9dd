"""The image builder, with storage of its own in the cache."""

from __future__ import annotations

from pathlib import Path, PurePath

from cluster.commands import run
from cluster.layout import Cache


def buildah(cache: Cache, *arguments: str | Path, what: str, cwd: Path | None = None) -> str:
    """Run one buildah command and return what it printed."""
    storage: list[str | Path] = [
        "--root",
        cache.containers / "root",
        "--runroot",
        cache.containers / "run",
        "--storage-driver",
        storage_driver(cache.root),
    ]
    # Builds run without a container runtime: nothing but chroot is needed, and it works everywhere.
    return run(
        ["buildah", *storage, *arguments],
        what=what,
        cwd=cwd,
        env={"BUILDAH_ISOLATION": "chroot"},
    ).strip()


def storage_driver(folder: Path) -> str:
    """`overlay`, or `vfs` where the folder itself lies on an overlay (inside a container)."""
    return "vfs" if _is_on_overlay(folder) else "overlay"


def snapshotter(folder: Path) -> str:
    """What containerd calls the same choice."""
    return "native" if _is_on_overlay(folder) else "overlayfs"


def file_system_of(folder: str, mounts: str) -> str:
    """The kind of file system that a folder lies on, from the text of /proc/self/mounts."""
    best = ("", "")
    for line in mounts.splitlines():
        _, mount, kind, *_ = line.split()
        # The later of two mounts on one place covers the earlier.
        if PurePath(folder).is_relative_to(mount) and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def _is_on_overlay(folder: Path) -> bool:
    return file_system_of(str(folder), Path("/proc/self/mounts").read_text()) == "overlay"
