"""Buildah, the image builder, with its storage in the cache."""

from __future__ import annotations

from pathlib import Path, PurePath

from cluster import locks
from cluster.commands import run
from cluster.errors import ClusterError
from cluster.layout import Cache
from cluster.progress import Progress


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


def forget_earlier_builds(cache: Cache, progress: Progress) -> None:
    """Remove what no named image is made of, which would fill the disk build by build."""
    with locks.exclusive(builds_lock(cache), "building an image", progress):
        try:
            buildah(cache, "rmi", "--prune", what="removing the images of earlier builds")
        except ClusterError as error:
            progress.note(str(error))  # it costs disk; the image that was asked for is there


def builds_lock(cache: Cache) -> Path:
    """Held shared by every build: until its end, nothing that it makes has a name."""
    return cache.images / "builds.lock"


def storage_driver(folder: Path) -> str:
    """`overlay`, or `vfs` where the folder itself lies on an overlay (inside a container)."""
    return "vfs" if _is_on_overlay(folder) else "overlay"


def snapshotter(folder: Path) -> str:
    """Return containerd's name of the same choice."""
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
