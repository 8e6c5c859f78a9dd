"""A whole Kubernetes node on this machine, in its own namespaces: pods really run."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from cluster import addresses, cgroups, components, configuration, provision
from cluster.commands import environment
from cluster.errors import ClusterError
from cluster.images import buildah, store
from cluster.images import builds as images
from cluster.interface import Endpoint, wait_until
from cluster.layout import Cache
from cluster.local import LocalCluster
from cluster.plan import Component
from cluster.progress import Progress, Silent

GPU = "nvidia.com/gpu"
NODE_PATIENCE_S = 60.0


class Node(LocalCluster):
    """Control plane, containerd, kubelet and kube-proxy in namespaces of their own; needs root.

    `gpus` emulated GPUs are in its capacity. Give `preload` the images that pods will use: they are
    imported once into a store which nodes start from, while `load` imports into this node only.
    """

    kind = "node"

    def __init__(
        self,
        name: str | None = None,
        *,
        gpus: int = 8,
        preload: Sequence[str] = (),
        persistent: bool = False,
        cache: Cache | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(name, persistent=persistent, cache=cache)
        self.gpus = gpus
        self._preload = tuple(preload)
        self._progress = progress or Silent()
        self._digests: dict[str, str] = {}

    @property
    def has_node(self) -> bool:
        """Pods run here."""
        return True

    def load(self, image: str) -> None:
        """Import an image's archive, unless the node has it in this form already.

        Raises:
            ClusterError: the image was not built.
        """
        archive = images.require(self.cache, image)
        if self._digests.get(image) != archive.digest:
            store.import_archive(
                self.cache,
                archive,
                self.layout.containerd_socket,
                self.layout.containerd_root,
                self.enter_command(),
            )
            self._digests[image] = archive.digest

    def enter_command(self) -> list[str]:
        """The words that, put before a command, run it inside the node."""
        if not self.layout.init_pid.exists():
            raise ClusterError(f"the node {self.name} is not running.")
        pid = self.layout.init_pid.read_text()
        # Not `ip netns exec`, which mounts another /sys.
        return ["nsenter", f"--target={pid}", "--net", "--mount", "--pid"]

    def inside_environment(self) -> dict[str, str]:
        """Return the variables that locate the API server, the runtime and the programs."""
        programs = str(self.programs.folder)
        return {
            "KUBECONFIG": str(self.layout.inside_kubeconfig),
            "CONTAINERD_ADDRESS": str(self.layout.containerd_socket),
            "CONTAINERD_NAMESPACE": store.NAMESPACE,
            "PATH": f"{programs}:{os.environ.get('PATH', '')}",
        }

    def forward(
        self, target: str, port: int, namespace: str = "default"
    ) -> AbstractContextManager[Endpoint]:
        """Reach `service/NAME` (balanced as for any client), `pod/NAME` or an address inside."""
        return self._forward_inside(target, port, namespace)

    @contextlib.contextmanager
    def _forward_inside(self, target: str, port: int, namespace: str) -> Iterator[Endpoint]:
        address = self._address_of(target, namespace)
        with addresses.listener_on_loopback() as listener:
            endpoint = Endpoint(addresses.LOOPBACK, addresses.port_of(listener))
            process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL"),
                    *(*self.enter_command()[:2], "--net"),
                    *(sys.executable, "-m", "cluster.forwarding"),
                    *(str(listener.fileno()), address, str(port)),
                ],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment(),
            )
        try:
            yield endpoint
        finally:
            process.kill()
            process.wait()

    def _address_of(self, target: str, namespace: str) -> str:
        kind, _, name = target.rpartition("/")
        if not kind:
            return target
        path = "{.status.podIP}" if kind in {"pod", "pods", "po"} else "{.spec.clusterIP}"
        words = ("get", kind, name, "--namespace", namespace, "-o", f"jsonpath={path}")
        address = self.kubectl(*words).strip()
        if not address or address == "None":
            raise ClusterError(f"{target} in {namespace} has no address yet.")
        return address

    def _require(self) -> None:
        provision.require_node(self.cache)

    def _prepare(self) -> None:
        root, layout = self.layout.root, self.layout
        wanted = [images.require(self.cache, name) for name in self._image_names()]
        store.ensure(self.cache, wanted, self._progress)
        self._digests = store.clone(self.cache, layout.containerd_root)
        network = root / "cni"
        network.mkdir()
        (network / "10-ptp.conflist").write_text(configuration.container_network(f"{root}/ipam"))
        (root / "resolv.conf").write_text(f"nameserver {addresses.NODE_ADDRESS}\n")
        (root / "kubelet.yaml").write_text(configuration.kubelet(layout, cgroup_v1=cgroups.is_v1()))
        (root / "proxy.yaml").write_text(configuration.proxy(layout))
        (root / "containerd.toml").write_text(
            configuration.containerd(
                str(layout.containerd_root),
                f"{root}/containerd-state",
                str(layout.containerd_socket),
                str(network),
                buildah.snapshotter(self.cache.root),
            )
        )

    def _image_names(self) -> tuple[str, ...]:
        return (configuration.PAUSE_IMAGE, *self._preload)

    def _components(self, port: int, listener_fd: int) -> tuple[Component, ...]:
        return components.node(self.layout, self.programs, listener_fd)

    def _finish_start(self) -> None:
        super()._finish_start()
        wait_until(self._node_is_ready, what=self._complaint(), timeout_s=NODE_PATIENCE_S)
        room = {GPU: str(self.gpus)}
        patch = json.dumps({"status": {"capacity": room, "allocatable": room}})
        words = ("patch", "node", addresses.NODE_NAME, "--subresource=status", "--type=merge")
        self.kubectl(*words, "-p", patch)

    def _node_is_ready(self) -> bool:
        self.check_alive()
        try:
            nodes = self.raw.ask("GET", "/api/v1/nodes")["items"]
        except ClusterError:
            return False
        said = [one for node in nodes for one in node["status"].get("conditions", ())]
        return any((one["type"], one["status"]) == ("Ready", "True") for one in said)

    def _complaint(self) -> str:
        return f"the node {self.name} did not become Ready (logs: {self.kept_logs})"
