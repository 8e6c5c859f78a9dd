"""A world: one namespace with its own proxy, operator process and kubelet.

Many run side by side on a shared cluster without seeing each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from reliability.fault_proxy.gates import Gate
from reliability.fault_proxy.proxy import FaultProxy
from reliability.testbed.admin import APPLY, Admin, Object
from reliability.testbed.fake_kubelet import ExporterAddresses, FakeKubelet
from reliability.testbed.operator_process import OperatorProcess, kubeconfig_through
from reliability.testbed.testbed import ACCELERATOR, OPERATOR, SYSTEM, SharedCluster

POLL_S = 0.4
SERVICES = "/apis/headroom.dev/v1alpha1/namespaces/{}/inferenceservices"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"


class NotReached(Exception):  # noqa: N818  (what is waited for)
    """Something did not come about in time."""


@dataclass(slots=True)
class World:
    """One namespace and everything that acts in it."""

    shared: SharedCluster
    namespace: str
    proxy: FaultProxy
    operator: OperatorProcess
    kubelet: FakeKubelet
    replicas_seen: list[int] = field(default_factory=list)
    """Each change of the Deployments here in order, as the API server reports it."""
    replicas_of: dict[str, list[int]] = field(default_factory=dict)
    """The same by name."""

    @property
    def admin(self) -> Admin:
        """Past the proxy."""
        return self.shared.admin

    def manifest(self, name: str = "resnet", **changes: Any) -> Object:
        """An InferenceService whose pods the exporter answers for."""
        scaling = {
            "minReplicas": 1,
            "maxReplicas": 8,
            "scaleDown": {"stabilizationWindow": "5s"},
            **changes.pop("scaling", {}),
        }
        runtime = {
            "image": "localhost/none:1",
            "port": self.shared.exporter.port,
            **changes.pop("runtime", {}),
        }
        return {
            "apiVersion": "headroom.dev/v1alpha1",
            "kind": "InferenceService",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "runtime": runtime,
                "accelerator": {"resource": ACCELERATOR, "count": 1},
                "slo": {"latency": {"target": "1.5s"}},
                "scaling": scaling,
                **changes,
            },
        }

    async def apply(self, name: str = "resnet", **changes: Any) -> None:
        """Apply an InferenceService as a user would."""
        manifest = self.manifest(name, **changes)
        await self.admin.patch(self._service(name), manifest, APPLY)

    async def delete_service(self, name: str = "resnet") -> None:
        """Delete it; children follow by garbage collection."""
        await self.admin.delete(self._service(name))

    def load(self, rps: float, name: str = "resnet") -> None:
        """Set the requests per second from now on."""
        self.shared.exporter.load((self.namespace, name), rps)

    async def service(self, name: str = "resnet") -> Object:
        """The object; empty where it is not."""
        return await self.admin.find(self._service(name)) or {}

    async def deployment(self, name: str = "resnet") -> Object:
        """The child; empty where it is not."""
        return await self.admin.find(f"{DEPLOYMENTS.format(self.namespace)}/{name}") or {}

    async def condition(self, kind: str, name: str = "resnet") -> tuple[str, str]:
        """Status and reason of a condition, empty before the first report."""
        found = (await self.service(name)).get("status", {}).get("conditions", ())
        return next(((c["status"], c["reason"]) for c in found if c["type"] == kind), ("", ""))

    async def serves(self, replicas: int, name: str = "resnet") -> bool:
        """Return whether this many are desired, ready, and known to the operator as ready."""
        deployment, service = await self.deployment(name), await self.service(name)
        status = service.get("status", {})
        return bool(
            deployment.get("spec", {}).get("replicas") == replicas
            and deployment.get("status", {}).get("readyReplicas") == replicas
            and status.get("readyReplicas") == status.get("replicas") == replicas
            and status.get("observedGeneration") == service["metadata"]["generation"]
        )

    async def wait(
        self, what: str, holds: Callable[[], Awaitable[object]], timeout_s: float = 180.0
    ) -> None:
        """Wait until it holds; raise NotReached with the state of things."""
        try:
            async with asyncio.timeout(timeout_s):
                while not await holds():  # noqa: ASYNC110  (the other side is a server)
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            status = json.dumps((await self.service()).get("status", {}), indent=1)[:6000]
            said = self.operator.said()[-3000:]
            raise NotReached(
                f"{self.namespace}: {what}: not in {timeout_s:g} s\n{status}\n{said}"
            ) from None

    def _service(self, name: str) -> str:
        return f"{SERVICES.format(self.namespace)}/{name}"


@contextlib.asynccontextmanager
async def world(
    on: SharedCluster,
    name: str,
    *,
    gate: Gate | None = None,
    tick: str = "500ms",
    lease: bool = False,
    prometheus: bool = False,
) -> AsyncIterator[World]:
    """Make a namespace with its proxy and kubelet; the operator is for the block to start.

    With a Lease the operator competes for one of its own here; else it is alone by construction.
    The exporter may replace a Prometheus too.
    """
    namespace = f"{name[:40]}-{secrets.token_hex(2)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await on.admin.create("/api/v1/namespaces", body)
    if lease:
        await _permit_leases(on.admin, namespace)
    addresses = ExporterAddresses(on.exporter, on.addresses)
    kubelet = FakeKubelet(on.admin, addresses, f"/api/v1/namespaces/{namespace}/pods")
    async with FaultProxy(on.admin.server, on.admin.authority_pem, gate) as proxy:
        kubeconfig = on.scratch / f"{namespace}.kubeconfig"
        operator = OperatorProcess(
            kubeconfig_through(proxy.url, on.credentials, kubeconfig),
            on.scratch / f"{namespace}.log",
            namespaces=[namespace],
            tick=tick,
            lease_namespace=namespace if lease else "",
            prometheus=f"http://127.0.0.1:{on.exporter.port}" if prometheus else "",
        )
        one = World(on, namespace, proxy, operator, kubelet)
        tasks = [asyncio.create_task(kubelet.run()), asyncio.create_task(_follow(one))]
        try:
            yield one
        finally:
            await operator.kill()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await on.admin.delete(f"/api/v1/namespaces/{namespace}")
            # no kubelet is left to confirm their end, and they would fill the node
            await on.admin.delete(f"/api/v1/namespaces/{namespace}/pods", grace_s=0)


async def _permit_leases(admin: Admin, namespace: str) -> None:
    """Let the operator have here what the shipped Role lets it have in its own namespace."""
    root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    rules = [{**leases, "verbs": ["get", "create", "update"]}]
    await admin.create(f"{root}/roles", {"metadata": {"name": "leases"}, "rules": rules})
    account = {"kind": "ServiceAccount", "name": OPERATOR, "namespace": SYSTEM}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "leases"}
    binding = {"metadata": {"name": "leases"}, "roleRef": role, "subjects": [account]}
    await admin.create(f"{root}/rolebindings", binding)


async def _follow(one: World) -> None:
    """Keep what the Deployments are asked for, change by change."""
    last: dict[str, int] = {}
    while True:
        async for event in one.admin.watch(DEPLOYMENTS.format(one.namespace)):
            uid = event["object"]["metadata"]["uid"]
            replicas = event["object"]["spec"]["replicas"]
            if event["type"] != "DELETED" and last.get(uid) != replicas:
                last[uid] = replicas
                one.replicas_seen.append(replicas)
                name = event["object"]["metadata"]["name"]
                one.replicas_of.setdefault(name, []).append(replicas)
        await asyncio.sleep(0.1)
