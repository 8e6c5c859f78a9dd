"""The shipped operator, services and load on them, for scenarios."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import Cluster
from cluster.interface import wait_until
from load.running import Load, running

ROOT = Path(__file__).parents[2]
LOCAL_OVERLAY = ROOT / "deploy" / "overlays" / "local"
SYSTEM = "headroom-system"
OPERATOR = "headroom-operator"
SERVER_IMAGE = "localhost/headroom-model-server:dev"

Object = Mapping[str, Any]


def install_operator(cluster: Cluster) -> None:
    """Apply the manifests that ship and wait until the operator is ready."""
    cluster.kubectl("apply", "--server-side", "-k", str(LOCAL_OVERLAY))
    cluster.kubectl(
        *("rollout", "status", f"deployment/{OPERATOR}", "--namespace", SYSTEM, "--timeout=60s")
    )


def emulated(
    name: str,
    *,
    load_s: float = 1.0,
    env: Mapping[str, str] | None = None,
    scaling: Mapping[str, Any] | None = None,
    slo: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Build an InferenceService whose engine spends 150 ms + 60 ms per item, four at a time."""
    variables = {
        "HEADROOM_ENGINE": "emulated",
        "HEADROOM_MAX_BATCH_SIZE": "4",
        "HEADROOM_EMULATED_FIXED_COST_S": "0.15",
        "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.06",
        "HEADROOM_EMULATED_LOAD_S": str(load_s),
        **(env or {}),
    }
    return {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {
            "runtime": {
                "image": SERVER_IMAGE,
                "env": [{"name": key, "value": value} for key, value in variables.items()],
            },
            "warmup": {"requests": 4, "timeout": "60s"},
            "slo": {"latency": {"target": "1.5s"}, **(slo or {})},
            "scaling": {
                "maxReplicas": 6,
                "scaleDown": {"stabilizationWindow": "20s"},
                **(scaling or {}),
            },
            "drain": {"gracePeriod": "20s"},
            **spec,
        },
    }


@dataclass(frozen=True)
class Service:
    """One InferenceService on the cluster."""

    cluster: Cluster
    namespace: str
    name: str

    @classmethod
    def create(cls, cluster: Cluster, namespace: str, manifest: Mapping[str, Any]) -> Service:
        """Apply the object; its name is in the manifest."""
        body = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
        cluster.apply(body)
        return cls(cluster, namespace, manifest["metadata"]["name"])

    def get(self) -> Object:
        """Read the object."""
        return self.read("apis/headroom.dev/v1alpha1", f"inferenceservices/{self.name}")

    def status(self) -> Object:
        """Read the status; empty before the first report."""
        status: Object = self.get().get("status", {})
        return status

    def condition(self, kind: str) -> Object:
        """Read one condition; empty if it is not there."""
        conditions = self.status().get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def deployment(self) -> Object:
        """Read the child."""
        return self.read("apis/apps/v1", f"deployments/{self.name}")

    def replicas(self) -> int:
        """Read how many replicas the Deployment is asked for."""
        return int(self.deployment()["spec"]["replicas"])

    def ready_replicas(self) -> int:
        """Read how many of the Deployment's replicas are ready."""
        return int(self.deployment().get("status", {}).get("readyReplicas", 0))

    def pods(self) -> list[Object]:
        """Read its pods, leaving ones included."""
        label = f"headroom.dev%2Finference-service%3D{self.name}"
        return list(self.read("api/v1", f"pods?labelSelector={label}")["items"])

    def event(self, reason: str) -> Object:
        """Read the first event about the object that has this reason; empty where none has."""
        found = sorted(
            self.read("apis/events.k8s.io/v1", "events")["items"],
            key=lambda one: one["eventTime"] or "",
        )
        about = (one for one in found if one["regarding"]["name"] == self.name)
        return next((one for one in about if one["reason"] == reason), {})

    def read(self, api: str, what: str) -> Object:
        """Read what else is in the namespace, by its path at the API server."""
        path = f"/{api}/namespaces/{self.namespace}/{what}"
        found: Object = self.cluster.raw.ask("GET", path)
        return found

    def wait(self, what: str, condition: Callable[[], object], timeout_s: float = 30.0) -> Any:
        """Wait until the condition holds, and return what it returned."""
        return wait_until(condition, what=f"{self.name}: {what}", timeout_s=timeout_s, every_s=0.5)

    def wait_ready(self, timeout_s: float = 40.0) -> None:
        """Wait until the object says that it is ready."""
        self.wait("Ready", lambda: self.condition("Ready").get("status") == "True", timeout_s)

    def load_words(self, url: str, rate_rps: float, seconds: float, folder: Path) -> list[str]:
        """Return the load generator's arguments for an even load; its trace is in the folder."""
        trace = folder / f"{self.name}.csv"
        rows = [f"{second},{rate_rps:g}" for second in range(int(seconds))]
        trace.write_text("\n".join(["t_s,requests", *rows, ""]))
        return [
            *("--url", url, "--model", self.name, "--trace", str(trace)),
            *("--duration", str(seconds), "--target", "1.5"),
        ]

    @contextlib.contextmanager
    def load(self, rate_rps: float, seconds: float, folder: Path) -> Iterator[Load]:
        """Send an even open-loop load through the Service, with keep-alive connections."""
        with self.cluster.forward(f"service/{self.name}", 80, self.namespace) as endpoint:
            words = self.load_words(endpoint.url, rate_rps, seconds, folder)
            with running(words, seconds, folder / f"{self.name}.jsonl") as load:
                yield load
