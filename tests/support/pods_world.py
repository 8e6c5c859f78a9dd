"""Pods that follow their Deployments in memory, nodes with few accelerators, model servers."""

from __future__ import annotations

import asyncio
import copy
import math
from functools import cache

from headroom.api.timestamps import epoch_s, rfc3339
from headroom.errors import ScrapeFailed
from headroom.resources.names import DELETION_COST
from support.cluster_world import FakeClock, FakeCluster, Manifest

RUNNING_PODS = ("Deployment", "StatefulSet", "Group")
"""Kinds that are followed: Kubernetes' own, and a custom resource with a scale subresource."""
WARMUP_S = 10.0
BOUNDS_S = tuple(0.001 * 1.15**k for k in range(80))


class Pods:
    """Pods that follow their Deployments' replicas; ready ones serve the arrivals evenly."""

    def __init__(self, cluster: FakeCluster, clock: FakeClock) -> None:
        self._cluster = cluster
        self._clock = clock
        self.arrivals_rps: dict[str, float] = {}
        self.running: dict[str, int] = {}
        """Requests in a batch, by pod; 0 where it is not said."""
        self.slow: dict[str, float] = {}
        """Time of a pod over the usual one from now on, by its name."""
        self._slow_from: dict[str, int] = {}
        self.spoiled: dict[str, Manifest] = {}
        """Status of a pod instead of its true one, by its name."""
        self.silent = False
        self.repeating = False
        """Something before the servers answers with the pages that it has."""
        self.rolling: set[str] = set()
        """Workloads in a rollout that does not end."""
        self.refused = ""
        """Reason why the API server takes no more pods."""
        self.capacity: float = math.inf
        """Accelerators of the cluster, one per pod."""
        self.drain_s = 0.0
        """Time for which a leaving pod keeps its accelerator."""
        self._placed_s: dict[str, float] = {}
        self._served: dict[str, tuple[float, float]] = {}
        self._pages: dict[str, tuple[int, str]] = {}
        self._restarted_s: dict[str, float] = {}
        self._number = 0
        self._progressed: dict[str, tuple[float | None, float | None, bool, str, str]] = {}
        """Source of each pod's last status, and the version that it then had."""

    def follow(self) -> None:
        """Bring the pods of every Deployment up to date, as controllers and kubelet would."""
        for (kind, namespace, name), deployment in list(self._cluster.objects.items()):
            if kind in RUNNING_PODS:
                self._follow(deployment, namespace, name)
        self._schedule()

    def of(self, name: str) -> list[Manifest]:
        return [
            one
            for (kind, _, _), one in self._cluster.objects.items()
            if kind == "Pod" and one["metadata"]["labels"]["headroom.dev/inference-service"] == name
        ]

    def all(self) -> list[Manifest]:
        return [one for (kind, _, _), one in self._cluster.objects.items() if kind == "Pod"]

    def forget_the_gone(self) -> None:
        """Drop what is kept of pods that are not there any more."""
        present = {one["metadata"]["uid"] for one in self.all()}
        self._served = {uid: one for uid, one in self._served.items() if uid in present}
        self._restarted_s = {uid: at for uid, at in self._restarted_s.items() if uid in present}

    def count(self, address: str) -> None:
        """Have the server there count a request that came past the Service."""
        for pod in self.all():
            if pod["status"].get("podIP") == address:
                uid, now_s = pod["metadata"]["uid"], self._clock.now_s()
                count, seen_s = self._served.get(uid, (0.0, now_s))
                self._served[uid] = (count + 1.0, seen_s)

    def restart(self, pod: Manifest) -> None:
        """End the containers of a pod; they come back at once, and are as cold as new ones."""
        self._restarted_s[pod["metadata"]["uid"]] = self._clock.now_s()

    def ready(self, name: str) -> list[Manifest]:
        return [one for one in self.of(name) if is_ready(one)]

    async def scrape(self, url: str, prefix: str, most_bytes: int) -> str:
        await asyncio.sleep(0.003)
        if self.silent:
            raise ScrapeFailed(f"{url} did not answer within 1 s")
        ip = url.removeprefix("http://").partition(":")[0]
        for (kind, _, _), one in self._cluster.objects.items():
            if kind == "Pod" and one["status"].get("podIP") == ip:
                return self._page(one)
        raise ScrapeFailed(f"{url}: connection refused")

    def _follow(self, deployment: Manifest, namespace: str, name: str) -> None:
        pods = [one for one in self.of(name) if "deletionTimestamp" not in one["metadata"]]
        replicas = deployment["spec"]["replicas"]
        for _ in range(len(pods), len(pods) if self.refused else replicas):
            self._start(deployment, namespace, name)
        for extra in sorted(pods, key=_removed_last)[replicas:]:
            extra["metadata"]["deletionTimestamp"] = rfc3339(self._clock.now_s())
        deployment["status"] = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": replicas,
            "updatedReplicas": replicas - (name in self.rolling),
            "readyReplicas": sum(
                "deletionTimestamp" not in one["metadata"] for one in self.ready(name)
            ),
            "conditions": [
                {"type": "ReplicaFailure", "status": "True", "message": self.refused}
                for _ in range(self.refused != "")
            ],
        }

    def _start(self, deployment: Manifest, namespace: str, name: str) -> None:
        self._number += 1
        template = deployment["spec"].get("template", {})
        described = template.get("spec", {})
        self._cluster.put(
            {
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-abc-{self._number}",
                    "namespace": namespace,
                    "labels": {
                        **template.get("metadata", {}).get("labels", {}),
                        "headroom.dev/inference-service": name,
                        "pod-template-hash": "abc",
                    },
                    "ownerReferences": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": "ReplicaSet",
                            "name": f"{name}-abc",
                            "controller": True,
                            "uid": deployment["metadata"]["uid"],
                        }
                    ],
                },
                "spec": {
                    key: copy.deepcopy(described[key])
                    for key in ("readinessGates", "containers", "hostNetwork")
                    if key in described
                },
                "status": {"phase": "Pending", "podIP": f"10.0.0.{self._number}"},
            }
        )

    def _schedule(self) -> None:
        """Let go of who has drained, and give what is free to the pods that wait longest."""
        now_s = self._clock.now_s()
        pods = [one for (kind, _, _), one in self._cluster.objects.items() if kind == "Pod"]
        for pod in pods:
            left = pod["metadata"].get("deletionTimestamp")
            waits = pod["metadata"]["uid"] not in self._placed_s
            if left and (waits or now_s - epoch_s(left) >= self.drain_s):
                self._placed_s.pop(pod["metadata"]["uid"], None)
                self._cluster.delete("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        present = {one["metadata"]["uid"] for one in pods}
        self._placed_s = {uid: at_s for uid, at_s in self._placed_s.items() if uid in present}
        for pod in [one for one in pods if "deletionTimestamp" not in one["metadata"]]:
            if len(self._placed_s) < self.capacity:
                self._placed_s.setdefault(pod["metadata"]["uid"], now_s)
            self._progress(pod, self._placed_s.get(pod["metadata"]["uid"]))

    def _progress(self, pod: Manifest, placed_s: float | None) -> None:
        began_s = self._restarted_s.get(pod["metadata"]["uid"], placed_s)
        started = began_s is not None and self._clock.now_s() - began_s >= WARMUP_S
        uid, metadata = pod["metadata"]["uid"], pod["metadata"]
        made_of = (placed_s, began_s, started, str(self.spoiled.get(metadata["name"])))
        if self._progressed.get(uid) != (*made_of, metadata["resourceVersion"]):
            self._say(pod, placed_s, began_s, started)
            self._progressed[uid] = (*made_of, metadata["resourceVersion"])
        if uid in self._served and not is_ready(pod):  # it gets no requests
            self._served[uid] = (self._served[uid][0], self._clock.now_s())

    def _say(
        self, pod: Manifest, placed_s: float | None, began_s: float | None, started: bool
    ) -> None:
        """Write the status as scheduler and kubelet would."""
        created_s = epoch_s(pod["metadata"]["creationTimestamp"])
        since_s = began_s + WARMUP_S if started and began_s is not None else created_s
        conditions = [_condition("ContainersReady", started, since_s)]
        gates = [_gate(pod, one["conditionType"]) for one in pod["spec"].get("readinessGates", ())]
        ready = started and all(gate.get("status") == "True" for gate in gates)
        if ready:
            since_s = max(since_s, *(epoch_s(gate["lastTransitionTime"]) for gate in gates), 0.0)
        why = (
            {} if ready else {"reason": f"{'ReadinessGates' if started else 'Containers'}NotReady"}
        )
        said = _condition("Ready", ready, since_s) | why
        conditions += [said, *(gate for gate in gates if gate)]
        if placed_s is None:
            conditions.append(
                _condition("PodScheduled", False, created_s)
                | {"reason": "Unschedulable", "message": "1 Insufficient nvidia.com/gpu."}
            )
        else:
            conditions.append(_condition("PodScheduled", True, placed_s))
        status = {"phase": "Running" if started else "Pending", "conditions": conditions}
        if gates:
            status["containerStatuses"] = [
                {
                    "name": one["name"],
                    "restartCount": int(pod["metadata"]["uid"] in self._restarted_s),
                    "containerID": f"containerd://{pod['metadata']['uid']}/{began_s}",
                    "state": {"running": {"startedAt": rfc3339(began_s)}} if began_s else {},
                }
                for one in pod["spec"]["containers"]
            ]
        status |= self.spoiled.get(pod["metadata"]["name"], {})
        self._cluster.update(pod, lambda one: one["status"].update(status))

    def _page(self, pod: Manifest) -> str:
        uid = pod["metadata"]["uid"]
        number, kept = self._pages.get(uid, (0, ""))
        if not self.repeating or not kept:
            label = f'model="{pod["metadata"]["labels"]["headroom.dev/inference-service"]}"'
            kept = self._written(pod) + f"headroom_scrapes_total{{{label}}} {number + 1}\n"
            self._pages[uid] = number + 1, kept
        return kept

    def _written(self, pod: Manifest) -> str:
        name = pod["metadata"]["labels"]["headroom.dev/inference-service"]
        uid, now_s = pod["metadata"]["uid"], self._clock.now_s()
        count, seen_s = self._served.get(uid, (0.0, now_s))
        share = self.arrivals_rps.get(name, 0.0) / max(len(self.ready(name)), 1)
        count += share * (now_s - seen_s)
        self._served[uid] = (count, now_s)
        running = self.running.get(pod["metadata"]["name"], 0)
        factor = self.slow.get(pod["metadata"]["name"], 1.0)
        late = 0
        if factor > 1.0:
            late = int(count) - self._slow_from.setdefault(uid, int(count))
        return page(model=name, served=int(count), running=running, late=late, factor=factor)


def _removed_last(pod: Manifest) -> tuple[bool, int]:
    """Order as a ReplicaSet does: it removes from the end."""
    annotations = pod["metadata"].get("annotations") or {}
    return not is_ready(pod), -int(annotations.get(DELETION_COST, "0"))


def page(*, model: str, served: int, running: int = 0, late: int = 0, factor: float = 1.0) -> str:
    """Expose a server that answers each request in 250 ms, one per batch; late ones in 4 s."""
    seconds = 0.21 * (served + (factor - 1.0) * late)
    text = _template(model).replace("SECONDS", f"{seconds:.6f}")
    text = text.replace("WITHIN", str(served - late)).replace("RECEIVED", str(served + running))
    return text.replace("SERVED", str(served)).replace("RUNNING", str(running))


@cache
def _template(model: str) -> str:
    label = f'model="{model}"'
    lines = [
        f"headroom_requests_received_total{{{label}}} RECEIVED",
        f'headroom_requests_total{{{label},outcome="ok"}} SERVED',
        f"headroom_requests_waiting{{{label}}} 0",
        f"headroom_requests_running{{{label}}} RUNNING",
        f"headroom_max_batch_size{{{label}}} 4",
        f"headroom_cost_fixed_seconds{{{label}}} 0.15",
        f"headroom_cost_per_item_seconds{{{label}}} 0.06",
        f"headroom_execution_duration_seconds_count{{{label}}} SERVED",
        f"headroom_execution_duration_seconds_sum{{{label}}} SECONDS",
        f"headroom_batch_size_sum{{{label}}} SERVED",
    ]
    for bound in BOUNDS_S:
        count = "WITHIN" if bound >= 0.25 else "0"
        count = "SERVED" if bound >= 4.0 else count
        le = format(bound, ".6g")
        lines.append(f'headroom_request_duration_seconds_bucket{{{label},le="{le}"}} {count}')
    lines.append(f'headroom_request_duration_seconds_bucket{{{label},le="+Inf"}} SERVED')
    return "\n".join(lines) + "\n"


def _condition(kind: str, holds: bool, since_s: float) -> Manifest:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "lastTransitionTime": rfc3339(since_s),
    }


def _gate(pod: Manifest, kind: str) -> Manifest:
    """Give a condition that is not the kubelet's; empty if it was never written."""
    conditions: list[Manifest] = pod["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def is_ready(pod: Manifest) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in pod["status"].get("conditions", ())
    )
