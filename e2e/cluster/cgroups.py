"""The cgroups of a cluster's pods, for cgroup v1 and v2."""

from __future__ import annotations

import time
from pathlib import Path

from cluster.errors import ClusterError

MOUNT = Path("/sys/fs/cgroup")
REMOVAL_PATIENCE_S = 3.0
WANTED_CONTROLLERS = ("cpuset", "cpu", "memory", "hugetlb", "pids")


def is_v1(mount: Path = MOUNT) -> bool:
    """One hierarchy per controller, rather than one for all."""
    return not (mount / "cgroup.controllers").exists()


def create(name: str, mount: Path = MOUNT) -> None:
    """Make the cgroup in each hierarchy; the kubelet refuses to start without it."""
    if not is_v1(mount):
        _enable_controllers(mount)
    for hierarchy in _hierarchies(mount):
        (hierarchy / name).mkdir(exist_ok=True)
    if is_v1(mount):
        # A new cpuset is empty, and nothing can be put into it before it has processors and memory.
        for resource in ("cpus", "mems"):
            source = mount / "cpuset" / f"cpuset.{resource}"
            if source.exists():
                target = mount / "cpuset" / name / f"cpuset.{resource}"
                target.write_text(source.read_text())


def remove(name: str, mount: Path = MOUNT) -> list[Path]:
    """Remove the cgroup and all below it, once empty of processes; return what would not go."""
    deadline = time.monotonic() + REMOVAL_PATIENCE_S
    while True:
        left = [
            path for hierarchy in _hierarchies(mount) for path in _remove_tree(hierarchy / name)
        ]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)  # the kernel lets go of dead processes a moment after they are reaped


def present(name: str, mount: Path = MOUNT) -> list[Path]:
    """Return the paths of the cgroup that exist."""
    return [hierarchy / name for hierarchy in _hierarchies(mount) if (hierarchy / name).exists()]


def _enable_controllers(mount: Path) -> None:
    """Hand down to child groups those controllers that the kubelet insists on."""
    available = (mount / "cgroup.controllers").read_text().split()
    handed_down = mount / "cgroup.subtree_control"
    for controller in WANTED_CONTROLLERS:
        if controller in available and controller not in handed_down.read_text().split():
            try:
                handed_down.write_text(f"+{controller}")
            except OSError as error:
                raise ClusterError(
                    f"the cgroup controller {controller} cannot be enabled for child groups of "
                    f"{mount} ({error.strerror}). Inside a container, give it the host's cgroup "
                    "namespace (docker run --privileged --cgroupns=host)."
                ) from error


def _hierarchies(mount: Path) -> list[Path]:
    if not is_v1(mount):
        return [mount]
    folders = {path.resolve() for path in mount.iterdir() if path.is_dir()}
    return sorted(folders)


def _remove_tree(root: Path) -> list[Path]:
    if not root.exists():
        return []
    left = []
    folders = sorted(root.glob("**/"), key=lambda path: len(path.parts), reverse=True)
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            left.append(folder)
    return left
