"""The image builder, with storage of its own in the cache."""

from __future__ import annotations

import os
from pathlib import Path

from cluster.commands import run
from cluster.layout import Cache

ON_OVERLAY_USE = "vfs"


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
    return ON_OVERLAY_USE if _is_on_overlay(folder) else "overlay"


def snapshotter(folder: Path) -> str:
    """What containerd calls the same choice."""
    return "native" if _is_on_overlay(folder) else "overlayfs"


def _is_on_overlay(folder: Path) -> bool:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    best = ("", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split()
        inside = existing == Path(mount) or Path(mount) in existing.parents
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1] == "overlay" and os.name == "posix"
