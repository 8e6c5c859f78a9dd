"""Requests through the gateway on a node while replicas and gateways start, stop and are killed.

On a node, with the operator and two gateways as they ship. Every request is counted by its client;
when a replica gets its first and its last is read from its own metrics.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.figures import Figure
from bench.gateway.life_figures import figures_of_absence, figures_of_kill, figures_of_life
from bench.node import stage
from bench.node.visits import Visits, visits
from bench.processes import of_container
from cluster import Node
from cluster.images import shipped
from cluster.layout import Cache
from cluster.progress import Progress
from load.messages import Summary
from scenarios.world import LOCAL_OVERLAY, OPERATOR, ROOT, SYSTEM, Service

OVERLAY = ROOT / "deploy" / "overlays" / "local-gateway"
GATEWAY = "headroom-gateway"
RATE_RPS, LIFE_S = 112.0, 180
GATEWAY_KILLED_S, OPERATOR_AWAY_S = 15, 300
PATIENCE_S = 90.0
COMPUTED_AT_ONCE = 4
"""Requests that one replica computes at once: at most these are lost when it is killed."""
PLANT = {
    "HEADROOM_EMULATED_FIXED_COST_S": "0.005",
    "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.002",
    "HEADROOM_MAX_BATCH_SIZE": str(COMPUTED_AT_ONCE),
}
"""4 in 13 ms, 308 per second: one replica carries the load while the other of two is killed."""


def measure(target: Node, progress: Progress) -> Sequence[Figure]:
    """Measure all three; ten minutes."""
    with _gateways(target, progress), stage.namespace(target, "life") as namespace:
        with progress.step("Starting a service behind the gateways"):
            service = Service.create(target, namespace, _manifest())
            stage.wait_for_replicas(service, 3, PATIENCE_S)
            service.wait("the Service points to a gateway", lambda: gateway_of(service), 30.0)
        with progress.step("Restarts, more and fewer replicas, replicas killed, under load"):
            seen, life, kills = _life(target, service)
        with (
            progress.step("A gateway killed, under load"),
            stage.load_inside(target, service, RATE_RPS, GATEWAY_KILLED_S) as load,
        ):
            time.sleep(GATEWAY_KILLED_S / 3)
            _kill(_pod_of(target, gateway_of(service)))
            killed = load.finish()
        with (
            progress.step("No operator, under load"),
            stage.load_inside(target, service, RATE_RPS, OPERATOR_AWAY_S) as load,
        ):
            _scale(target, OPERATOR, 0)
            away = load.finish()
            _scale(target, OPERATOR, 1)
    return [
        *figures_of_life(seen, life, kills, COMPUTED_AT_ONCE),
        *figures_of_kill(killed, RATE_RPS),
        *figures_of_absence(away, OPERATOR_AWAY_S),
    ]


def _manifest() -> dict[str, Any]:
    return stage.manifest(
        "life",
        env=PLANT,
        scaling={"minReplicas": 3, "maxReplicas": 3},
        slo={"latency": {"target": "500ms"}},
        routing={"mode": "Gateway"},
        drain={"gracePeriod": "10s"},
    )


@contextlib.contextmanager
def _gateways(target: Node, progress: Progress) -> Iterator[None]:
    """Run gateways next to the operator; afterwards it runs as before."""
    shipped.build(Cache.of_this_user(), [shipped.GATEWAY], progress)
    target.load(shipped.GATEWAY.image)
    target.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(OVERLAY))
    for name in (OPERATOR, GATEWAY):
        words = ("rollout", "status", f"deployment/{name}", "--namespace", SYSTEM)
        target.kubectl(*words, "--timeout=90s")
    yield
    target.kubectl("delete", "deployment", GATEWAY, "--namespace", SYSTEM, "--wait=false")
    target.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(LOCAL_OVERLAY))


def _life(target: Node, service: Service) -> tuple[Visits, Summary, int]:
    """Send load, and meanwhile start, stop and kill replicas; count the kills."""
    kills = 0
    with (
        visits(target, service) as seen,
        stage.load_inside(target, service, RATE_RPS, LIFE_S) as load,
    ):
        until_s, number = time.monotonic() + LIFE_S - 25.0, 0
        while time.monotonic() < until_s:
            for replicas in (5, 2, 3):
                _bounds(service, replicas)
                _settle(service, replicas)
                if replicas != 5 and time.monotonic() < until_s:
                    # A container that was killed twice is kept waiting by the kubelet.
                    killed = min(service.pods(), key=_restarts)
                    seen.kills(killed["metadata"]["name"])
                    _kill(killed)
                    kills += 1
                    time.sleep(1.0)  # until it is seen
                    _settle(service, replicas)
            number += 1
            metadata = {"annotations": {"headroom.dev/bench": str(number)}}
            _patch(service, {"runtime": {"podTemplate": {"metadata": metadata}}})
            time.sleep(2.0)
            _settle(service, 3)
        return seen, load.finish(), kills


def _bounds(service: Service, replicas: int) -> None:
    _patch(service, {"scaling": {"minReplicas": replicas, "maxReplicas": replicas}})


def _patch(service: Service, spec: dict[str, Any]) -> None:
    words = ("patch", "hisvc", service.name, "--namespace", service.namespace, "--type=merge")
    service.cluster.kubectl(*words, "-p", json.dumps({"spec": spec}))


def _settle(service: Service, replicas: int) -> None:
    """Wait until this many are ready and none is coming or going."""

    def settled() -> bool:
        pods = service.pods()
        return len(pods) == replicas and service.ready_replicas() == replicas

    service.wait(f"{replicas} replicas", settled, PATIENCE_S)


def _scale(target: Node, deployment: str, replicas: int) -> None:
    words = ("scale", f"deployment/{deployment}", "--namespace", SYSTEM)
    target.kubectl(*words, f"--replicas={replicas}")


def gateway_of(service: Service) -> str:
    """Return the address of the gateway that a service leads to; empty where it leads to none."""
    label = f"kubernetes.io/service-name={service.name}"
    found = service.cluster.get("endpointslices", "--namespace", service.namespace, "-l", label)
    ours = [one for one in found["items"] if one["metadata"]["name"].endswith("-gateway")]
    addresses = [
        a for one in ours for each in one.get("endpoints") or () for a in each["addresses"]
    ]
    return addresses[0] if addresses else ""


def _pod_of(target: Node, address: str) -> Any:
    pods = target.get("pods", "--namespace", SYSTEM)["items"]
    return next(pod for pod in pods if pod["status"].get("podIP") == address)


def _kill(pod: Any) -> None:
    """End the processes of a pod's first container at once, as the kernel does for want of memory.

    Of a gateway it is Envoy's.
    """
    first = pod["spec"]["containers"][0]["name"]
    statuses = {one["name"]: one for one in pod["status"]["containerStatuses"]}
    container = statuses[first]["containerID"]
    for process in of_container(container.removeprefix("containerd://")):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def _restarts(pod: Any) -> int:
    return int(pod["status"]["containerStatuses"][0]["restartCount"])
