"""Gateways as they ship, where Services lead, and traffic through one of them."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from threading import Event
from typing import Any

from cluster import Cluster
from cluster.interface import Endpoint
from load.outcomes import input_of, is_right, question
from scenarios.world import OPERATOR, ROOT, SYSTEM, Service

OVERLAY = ROOT / "deploy" / "overlays" / "local-gateway"
GATEWAY, ACTIVATOR = "headroom-gateway", "headroom-activator"


@contextlib.contextmanager
def installed(cluster: Cluster) -> Iterator[None]:
    """Run the operator, gateways and activators; remove the latter two at the end."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(OVERLAY))
    for name in (OPERATOR, GATEWAY, ACTIVATOR):
        words = ("rollout", "status", f"deployment/{name}", "--namespace", SYSTEM)
        cluster.kubectl(*words, "--timeout=90s")
    yield
    gone = ("delete", "deployment", GATEWAY, ACTIVATOR, "--namespace", SYSTEM)
    cluster.kubectl(*gone, "--wait=false")


def led_to(service: Service, name: str = "") -> set[str]:
    """Read the addresses to which the Service of this name leads; default: the service's."""
    label = f"kubernetes.io%2Fservice-name%3D{name or service.name}"
    found = service.read("apis/discovery.k8s.io/v1", f"endpointslices?labelSelector={label}")
    return {
        address
        for one in found["items"]
        for endpoint in one.get("endpoints") or ()
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    }


def addresses(cluster: Cluster, namespace: str, label: str) -> set[str]:
    """Read the addresses of the pods with this label."""
    found = cluster.get("pods", "--namespace", namespace, "-l", label)
    return {pod["status"].get("podIP", "") for pod in found["items"]}


@dataclass
class Traffic:
    """Requests one after the other from a few clients, each over a connection of its own."""

    endpoint: Endpoint
    model: str
    numbers: Iterator[int] = field(default_factory=count)
    ended: Event = field(default_factory=Event)
    right: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return the address that describes the model."""
        return f"{self.endpoint.url}/v2/models/{self.model}"

    def about(self) -> tuple[Any, int] | None:
        """Ask for the model's input; None without an answer, as before kube-proxy has its rules."""
        try:
            with urllib.request.urlopen(self.url, timeout=10) as answer:
                return input_of(json.load(answer))
        except OSError as error:
            print(f"{self.url}: {error}")
            return None

    def client(self, tensor: Any, size: int) -> None:
        """Send one request after the other until the traffic ends."""
        while not self.ended.is_set():
            number = next(self.numbers)
            body = json.dumps(question(number, size, tensor)).encode()
            request = urllib.request.Request(f"{self.url}/infer", data=body)
            request.add_header("Content-Type", "application/json")
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    assert is_right(number, size, json.load(answer))
                self.right.append(number)
            except (OSError, AssertionError) as error:
                self.said.append(f"{time.time():.1f} {error}")

    @classmethod
    @contextlib.contextmanager
    def through(cls, service: Service, name: str = "", clients: int = 4) -> Iterator[Traffic]:
        """Send requests for the block through the Service of this name."""
        name = name or service.name
        with (
            service.cluster.forward(f"service/{name}", 80, service.namespace) as endpoint,
            ThreadPoolExecutor(clients) as pool,
        ):
            traffic = cls(endpoint, service.name)
            tensor, size = service.wait(f"{name} answers", traffic.about, 20)
            for _ in range(clients):
                pool.submit(traffic.client, tensor, size)
            try:
                yield traffic
            finally:
                traffic.ended.set()
