"""The stage: a cluster with the shipped operator and the sample service, warm and ready."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from cluster import Cluster, ClusterError, ExternalCluster, Node, provision, wait_until
from cluster.images import shipped
from cluster.images.shipped import Shipped
from cluster.layout import Cache
from cluster.progress import Progress
from demo import plan
from demo.reader import Reader, UnreadableError
from demo.scene import Scene
from headroom.api.kind import GROUP, PLURAL

LOAD = Shipped(plan.LOAD_IMAGE, plan.LOAD_DOCKERFILE)
OPERATOR_PATIENCE = "120s"
READY_PATIENCE_S = 120.0
POLL_S = 0.5
RESOURCE = f"{PLURAL}.{GROUP}"
CRD = f"crd/{RESOURCE}"


@contextlib.contextmanager
def cluster(scene: Scene, progress: Progress) -> Iterator[Cluster]:
    """Return the cluster that `KUBECONFIG` names, or a local node that ends with the block."""
    if os.environ.get("KUBECONFIG"):
        with ExternalCluster() as external, _left_as_found(external, scene, progress):
            yield external
        return
    cache = Cache.of_this_user()
    provision.ensure_node(cache, progress)
    built = shipped.build(cache, (*shipped.SMALL, LOAD), progress)
    node = Node(
        scene.cluster,
        gpus=plan.GPUS,
        preload=[archive.image for archive in built],
        persistent=scene.keep,
        progress=progress,
    )
    with contextlib.ExitStack() as stack:
        with progress.step(f"Starting a Kubernetes node with {plan.GPUS} emulated GPUs"):
            stack.enter_context(node)
        try:
            yield node
        except ClusterError:
            progress.note(f"Logs of every component and pod: {node.kept_logs}")
            raise


def install(target: Cluster, progress: Progress) -> None:
    """Install CRD, RBAC and operator from the manifests that ship, and wait for the operator."""
    with progress.step("Installing the operator with kubectl from deploy/"):
        target.kubectl("apply", "--server-side", "-k", plan.MANIFESTS)
        target.kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")
        target.kubectl(
            *("rollout", "status", f"deployment/{plan.OPERATOR}"),
            *("--namespace", plan.OPERATOR_NAMESPACE, f"--timeout={OPERATOR_PATIENCE}"),
            timeout_s=180,
        )


def serve(target: Cluster, scene: Scene, progress: Progress) -> str:
    """Apply the sample, wait until it is ready, and return its name."""
    scope = ("--namespace", scene.namespace)
    with progress.step(
        f"Applying deploy/samples/{scene.sample.name} and waiting until the service is warm"
    ):
        target.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.namespace}}
        )
        target.kubectl("apply", "-f", scene.sample, *scope)
        items = target.get(RESOURCE, *scope)["items"]
        if len(items) != 1:
            raise ClusterError(
                f"{scene.sample.name} must hold one InferenceService; got {len(items)}."
            )
        name = str(items[0]["metadata"]["name"])
        with contextlib.closing(reader(target, scene, name)) as reading:
            _wait_until_ready(reading)
    return name


def reader(target: Cluster, scene: Scene, name: str) -> Reader:
    """Read that service of the demo's namespace."""
    return Reader(target.kubeconfig, scene.namespace, name, plan.GPU)


def _wait_until_ready(reading: Reader) -> None:
    seen = "nothing yet"

    def ready() -> bool:
        nonlocal seen
        try:
            service = reading.service()
        except UnreadableError as error:
            seen = str(error)
            return False
        seen = service.messages.get("Ready", "the operator has not written the condition Ready")
        return service.is_true("Ready")

    try:
        wait_until(ready, what="the service", timeout_s=READY_PATIENCE_S, every_s=POLL_S)
    except ClusterError:
        raise ClusterError(
            f"the service was not Ready within {READY_PATIENCE_S:g} s; its condition: {seen}"
        ) from None


@contextlib.contextmanager
def _left_as_found(target: Cluster, scene: Scene, progress: Progress) -> Iterator[None]:
    """Remove what the demo puts into a cluster that is not its own, and nothing that was there."""
    already = target.kubectl("get", "namespaces,crds", "-o", "name", "--ignore-not-found").split()
    if f"namespace/{scene.namespace}" in already:
        raise ClusterError(
            f"the namespace {scene.namespace} exists: another demo runs or was kept. "
            f"Remove it with `kubectl delete namespace {scene.namespace}`."
        )
    installed = any(name.endswith(f"/{RESOURCE}") for name in already)
    try:
        yield
    finally:
        if not scene.keep:
            with progress.step("Removing the demo from the cluster"):
                target.kubectl(
                    *("delete", "namespace", scene.namespace, "--ignore-not-found"), timeout_s=300
                )
                if not installed:
                    target.kubectl(
                        *("delete", "-k", plan.MANIFESTS, "--ignore-not-found"), timeout_s=300
                    )
