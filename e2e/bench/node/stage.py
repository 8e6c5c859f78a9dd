"""A local node with the shipped operator and services on it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster import Node, provision, wait_until
from cluster.images import shipped
from cluster.layout import Cache
from cluster.progress import Progress
from load.running import GENERATOR, Load, running
from scenarios.world import Service, emulated, install_operator

GPUS = 64
"""Emulated; enough that none of the parts waits for one."""
GONE_PATIENCE_S = 120.0
CPU_REQUEST = "50m"
"""Request of the sample. A pod without any has a five-hundredth of the weight of other processes
on the machine, which would then be what is measured."""


@contextlib.contextmanager
def node(progress: Progress) -> Iterator[Node]:
    """Start the node and the operator; both end with the block.

    Raises:
        NotPossibleError: not root.
        ClusterError: something could not be built or started.
    """
    cache = Cache.of_this_user()
    provision.ensure_node(cache, progress)
    built = shipped.build(cache, shipped.SMALL, progress)
    images = [archive.image for archive in built]
    with contextlib.ExitStack() as stack:
        with progress.step("Starting a Kubernetes node"):
            target = stack.enter_context(Node(gpus=GPUS, preload=images, progress=progress))
        with progress.step("Installing the shipped operator"):
            install_operator(target)
        yield target


@contextlib.contextmanager
def namespace(target: Node, name: str) -> Iterator[str]:
    """Make a namespace; at the end of the block its pods are gone and load nothing any more."""
    target.create_namespace(name)
    yield name
    target.kubectl("delete", "hisvc", "--all", "--namespace", name)
    target.kubectl("delete", "pods", "--all", "--namespace", name, "--wait=false", "--now")
    wait_until(
        lambda: not target.get("pods", "--namespace", name)["items"],
        what=f"the pods of {name} gone",
        timeout_s=GONE_PATIENCE_S,
        every_s=0.5,
    )


@contextlib.contextmanager
def load_inside(target: Node, service: Service, rate_rps: float, seconds: float) -> Iterator[Load]:
    """Send an even open-loop load from inside the node's network, as a pod does.

    Without a forwarder in between, a refused connection differs from one that breaks.
    """
    network = (*target.enter_command()[:2], "--net")
    address = service.read("api/v1", f"services/{service.name}")["spec"]["clusterIP"]
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as name:
        folder = Path(name)
        words = service.load_words(f"http://{address}", rate_rps, seconds, folder)
        program = ("setpriv", "--pdeathsig", "KILL", *network, *GENERATOR)
        with running(words, seconds, folder / "said.jsonl", program) as load:
            yield load


def manifest(name: str, **options: Any) -> dict[str, Any]:
    """Build an emulated service whose pods ask for a little CPU; options as for `emulated`."""
    body = emulated(name, **options)
    body["spec"]["runtime"]["resources"] = {"requests": {"cpu": CPU_REQUEST}}
    return body


def wait_for_replicas(service: Service, count: int, timeout_s: float) -> None:
    """Wait until this many are ready and the operator knows it."""
    service.wait(
        f"{count} replicas ready",
        lambda: _knows(service.status(), count),
        timeout_s=timeout_s,
    )


def _knows(status: Any, count: int) -> bool:
    fresh = status.get("signals", {}).get("freshness") == "Fresh"
    return bool(fresh and status.get("readyReplicas") == count)
