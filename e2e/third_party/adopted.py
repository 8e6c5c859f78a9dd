"""A third-party server with targetRef: adopted, measured, scaled under load, warm by its gate."""

from __future__ import annotations

import contextlib
import re
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cluster import Cluster, Node
from cluster.images import shipped
from cluster.interface import Endpoint
from cluster.layout import Cache
from cluster.progress import OnConsole
from scenarios.world import Object, Service
from third_party.peers import WARMUP_REQUESTS, Peer

GATE = "headroom.dev/warm"
CLIENTS = 16
"""Four batches' worth: one replica always has three batches waiting."""


def provide(cluster: Cluster, peer: Peer) -> None:
    """Build the server's image, and have the node know it."""
    if isinstance(cluster, Node):
        shipped.build(Cache.of_this_user(), [peer.image], OnConsole())
        cluster.load(peer.image.image)


@dataclass(frozen=True)
class Adopted(Service):
    """A workload of its own, and the InferenceService of the same name that scales it."""

    peer: Peer = field(kw_only=True)

    @classmethod
    def adopt(cls, cluster: Cluster, namespace: str, peer: Peer) -> Adopted:
        """Apply the workload as its owner would, then the InferenceService."""
        name = peer.name
        for one in (peer.deployment(name), peer.service(name), peer.inference_service(name)):
            cluster.apply({**one, "metadata": {**one["metadata"], "namespace": namespace}})
        return cls(cluster, namespace, name, peer=peer)

    def pods(self) -> list[Object]:
        """Read its pods, leaving ones included."""
        return list(self.read("api/v1", f"pods?labelSelector=app%3D{self.name}")["items"])

    def warm(self) -> list[Object]:
        """Read the pods that are ready, each of which has to be warm by its gate."""
        ready = [one for one in self.pods() if condition(one, "Ready").get("status") == "True"]
        for one in ready:
            gate = condition(one, GATE)
            assert (gate["status"], gate["reason"]) == ("True", "Warm"), gate
            sent = re.match(r"(\d+) requests were sent", gate["message"])
            assert sent, gate["message"]
            assert int(sent[1]) >= self.peer.cold_requests + WARMUP_REQUESTS, gate["message"]
            assert condition(one, "Ready")["lastTransitionTime"] >= gate["lastTransitionTime"]
        return ready

    def is_measured(self) -> bool:
        """Return whether a decision is based on the pods' metrics."""
        status = self.status()
        signals = status.get("signals", {})
        return bool(status.get("decision")) and signals.get("freshness") == "Fresh"

    @contextlib.contextmanager
    def asked(self) -> Iterator[Traffic]:
        """Have clients send one request after the other."""
        with self.cluster.forward(f"service/{self.name}", 80, self.namespace) as endpoint:
            traffic = Traffic(endpoint, self.peer)
            threads = [threading.Thread(target=traffic.client) for _ in range(CLIENTS)]
            for one in threads:
                one.start()
            try:
                yield traffic
            finally:
                traffic.ended.set()
                for one in threads:
                    one.join()


@dataclass
class Traffic:
    """The clients' requests and their failures."""

    endpoint: Endpoint
    peer: Peer
    ended: threading.Event = field(default_factory=threading.Event)
    answered: int = 0
    wrong: list[str] = field(default_factory=list)

    def client(self) -> None:
        """Send requests until stopped, each over a new connection."""
        request = urllib.request.Request(
            f"{self.endpoint.url}{self.peer.path}",
            data=self.peer.body.encode(),
            headers={"Content-Type": "application/json"},
        )
        while not self.ended.is_set():
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    assert self.peer.answer in answer.read()
                self.answered += 1
            except (OSError, AssertionError) as error:
                self.wrong.append(str(error))
                self.ended.wait(0.2)


def condition(pod: Object, kind: str) -> Any:
    """Read a condition of a pod; empty where it is not there."""
    found = pod.get("status", {}).get("conditions", ())
    return next((one for one in found if one["type"] == kind), {})


def scaled_under_load_with_warm_pods(one: Adopted) -> None:
    """Adopted, measured, scaled; every replica is warmed before it becomes ready."""
    start_s = one.peer.start_s
    one.wait("the first pod is warm", one.warm, start_s)
    one.wait("measured", one.is_measured, 40)
    assert one.condition("Ready")["reason"] == "Serving"
    assert one.condition("MetricsAvailable")["status"] == "True"
    with one.asked() as traffic:
        one.wait("more replicas are desired", lambda: one.replicas() >= 2, 60)
        one.wait("they are warm and ready", lambda: len(one.warm()) >= 2, start_s)
    assert traffic.answered > CLIENTS
    assert not traffic.wrong
    assert one.event("ScaledUp")


def drained_without_a_loss(one: Adopted) -> None:
    """A pod leaves while clients ask: each request gets its answer, and a warm pod follows."""
    leaving = one.warm()[0]["metadata"]["name"]
    with one.asked() as traffic:
        one.wait("requests are answered", lambda: traffic.answered > CLIENTS, one.peer.start_s / 3)
        one.cluster.kubectl(
            *("delete", "pod", leaving, "--namespace", one.namespace, "--wait=false")
        )

        def replaced() -> bool:
            names = [pod["metadata"]["name"] for pod in one.pods()]
            return leaving not in names and len(one.warm()) >= one.replicas()

        one.wait("it has left, and another is warm", replaced, one.peer.start_s)
    assert not traffic.wrong
