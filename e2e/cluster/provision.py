"""Builds and installs everything once, so that clusters start in seconds."""

from __future__ import annotations

import os

from cluster import locks
from cluster.errors import ClusterError, NotPossibleError
from cluster.images import base_image
from cluster.layout import Cache
from cluster.progress import Progress
from cluster.tools import binaries, debian, prometheus

OR_ELSE = "Or set KUBECONFIG to a cluster to use instead (kind, minikube, a real one)."
NEEDS_ROOT = (
    f"a local node needs root, for its namespaces and its container runtime. Run as root. {OR_ELSE}"
)


def ensure_control_plane(cache: Cache, progress: Progress) -> None:
    """Go and the Kubernetes program; nothing here needs root."""
    with locks.exclusive(cache.root / "setup.lock", "setting up", progress):
        binaries.ensure_kubernetes(cache, progress)


def ensure_node(cache: Cache, progress: Progress) -> None:
    """Install or build what a node needs: packages, programs and base images.

    Raises:
        NotPossibleError: not root, or packages that cannot be installed.
        ClusterError: a step failed.
    """
    if os.geteuid() != 0:
        raise NotPossibleError(NEEDS_ROOT)
    with locks.exclusive(cache.root / "setup.lock", "setting up", progress):
        try:
            debian.ensure(debian.NODE, progress)
        except NotPossibleError as error:
            raise NotPossibleError(f"{error}. {OR_ELSE}") from error
        binaries.ensure_kubernetes(cache, progress)
        base_image.ensure_pause(cache, progress)
        base_image.ensure_base(cache, progress)


def ensure_chart_tools(cache: Cache, progress: Progress) -> None:
    """Helm and promtool; nothing here needs root.

    Raises:
        NotPossibleError: this system has no Debian packages.
        ClusterError: a step failed.
    """
    with locks.exclusive(cache.root / "setup.lock", "setting up", progress):
        binaries.ensure_helm(cache, progress)
        prometheus.ensure(cache, progress)


def ensure_helm(cache: Cache, progress: Progress) -> None:
    """Helm alone, for what needs no more.

    Raises:
        ClusterError: a step failed.
    """
    with locks.exclusive(cache.root / "setup.lock", "setting up", progress):
        binaries.ensure_helm(cache, progress)


def ensure_signing(cache: Cache, progress: Progress) -> None:
    """Install what signs a release and checks signatures.

    Raises:
        NotPossibleError: it is missing, and this user or this system cannot install it.
        ClusterError: the installation failed.
    """
    with locks.exclusive(cache.root / "setup.lock", "setting up", progress):
        debian.ensure(debian.SIGNING, progress)


def ensure_browser(cache: Cache, progress: Progress) -> None:
    """Chromium, which looks at the console's pages.

    Raises:
        NotPossibleError: it is missing, and this user or this system cannot install it.
        ClusterError: the installation failed.
    """
    with locks.exclusive(cache.root / "setup.lock", "setting up", progress):
        debian.ensure(debian.BROWSER, progress)


def require_node(cache: Cache) -> None:
    """Check, in a few milliseconds and without changing anything, that a node can start.

    Raises:
        NotPossibleError: not root.
        ClusterError: the set-up was not run, or not to its end.
    """
    if os.geteuid() != 0:
        raise NotPossibleError(NEEDS_ROOT)
    lacking = [f"package {package}" for package in debian.missing(debian.NODE)]
    if not binaries.kubernetes(cache).complete:
        lacking.append("the Kubernetes program")
    if not base_image.is_complete(cache):
        lacking.append("the base images")
    if lacking:
        raise ClusterError(f"{', '.join(lacking)} missing. Run `python -m cluster setup`.")
