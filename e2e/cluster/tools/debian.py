"""Installs the Debian packages that nodes and browsers need, where they are missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from cluster.commands import SYSTEM_PATH, run
from cluster.configuration import CNI_PROGRAMS
from cluster.errors import NotPossibleError
from cluster.progress import Progress

NODE: Mapping[str, str] = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": f"{CNI_PROGRAMS}/ptp",
    "iptables": "iptables",
    "iproute2": "ip",
    "conntrack": "conntrack",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "util-linux": "unshare",
    "ca-certificates": "update-ca-certificates",
}
"""A program of each package, by which its presence is known."""
BROWSER: Mapping[str, str] = {"chromium": "chromium"}
"""The same for what looks at pages; 90 MB to fetch."""
SIGNING: Mapping[str, str] = {"gpg": "gpg", "gpg-agent": "gpg-agent", "gpgconf": "gpgconf"}
"""The same for what signs a release."""


def missing(programs: Mapping[str, str]) -> list[str]:
    """The packages whose programs are not on this machine."""
    return [package for package, program in programs.items() if not _present(program)]


def ensure(programs: Mapping[str, str], progress: Progress) -> None:
    """Install the packages whose programs are missing.

    Raises:
        NotPossibleError: packages are missing, and this user or this system cannot install them.
        ClusterError: the installation failed.
    """
    wanted = missing(programs)
    if not wanted:
        return
    by_hand = f"apt-get install {' '.join(wanted)}"
    if shutil.which("apt-get", path=SYSTEM_PATH) is None:
        raise NotPossibleError(
            f"programs of the Debian packages {', '.join(wanted)} are missing, and this system has "
            "no apt-get: install their equivalents"
        )
    if os.geteuid() != 0:
        raise NotPossibleError(f"packages are missing and only root can install them: {by_hand}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with progress.step(f"Installing Debian packages: {' '.join(wanted)}"):
        run(["apt-get", "update", "-q"], what="reading the package index", env=quiet)
        run(
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", *wanted],
            what=f"installing packages ({by_hand})",
            # The node runs its own container runtime: the machine's needs no service for it.
            env={**quiet, "RUNLEVEL": "1"},
        )


def _present(program: str) -> bool:
    if program.startswith("/"):
        return Path(program).exists()
    return shutil.which(program, path=SYSTEM_PATH) is not None
