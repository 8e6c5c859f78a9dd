"""Creates many objects quickly: concurrent requests, counted by a progress bar."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from reliability.scale_1000.addresses import service_name
from reliability.testbed.admin import Admin, Object, Refused
from reliability.testbed.testbed import ACCELERATOR
from reliability.testbed.world import SERVICES

AT_ONCE = 24
PODS_PER_NAMESPACE, SERVICES_PER_NAMESPACE = 1000, 100
NODE = "a-node"
SCALE, UNRELATED = "scale", "unrelated"
Advance = Callable[[int], object]
"""Takes how many there are by now."""


def namespace_of(service: int) -> str:
    """Name the namespace of a service: a hundred in each, as teams have them."""
    return f"{SCALE}-{service // SERVICES_PER_NAMESPACE}"


def path_of(service: int) -> str:
    """Return the path of the collection that the service is in."""
    return SERVICES.format(namespace_of(service))


def manifest(service: int, port: int, pods: int) -> Object:
    """Describe a service of this many pods, bound as they are made: no scheduler waits."""
    name = service_name(service)
    return {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace_of(service)},
        "spec": {
            "runtime": {
                "image": "localhost/none:1",
                "port": port,
                "podTemplate": {"spec": {"nodeName": NODE}},
            },
            "accelerator": {"resource": ACCELERATOR, "count": 1},
            "slo": {"latency": {"target": "1.5s"}},
            "scaling": {"minReplicas": pods, "maxReplicas": pods + 2},
        },
    }


def unrelated_pod(number: int) -> tuple[str, Object]:
    """Return namespace and manifest of an unrelated pod of usual size."""
    namespace = f"{UNRELATED}-{number // PODS_PER_NAMESPACE}"
    labels = {"app": f"app-{number % 50}", "pod-template-hash": "5d9c7b8f6d"}
    environment = [{"name": f"SETTING_{one}", "value": "x" * 40} for one in range(10)]
    container: dict[str, Any] = {"name": "app", "image": "localhost/none:1", "env": environment}
    return namespace, {
        "metadata": {"name": f"pod-{number}", "labels": labels},
        "spec": {
            "nodeName": NODE,
            "containers": [container],
            "automountServiceAccountToken": False,
        },
    }


async def make_namespaces(admin: Admin, services: Iterable[int], unrelated: int) -> None:
    """Make the namespaces, and wait until pods may be made in them."""
    names = {namespace_of(one) for one in services}
    names |= {f"{UNRELATED}-{one}" for one in range(-(-unrelated // PODS_PER_NAMESPACE))}
    for name in sorted(names):
        try:
            # pods name their node, which the admission policy refuses elsewhere
            labels = {"headroom.dev/pod-template": "unrestricted"}
            body = {"metadata": {"name": name, "labels": labels}}
            await admin.create("/api/v1/namespaces", body)
        except Refused as error:
            if error.code != 409:
                raise
    for name in sorted(names):
        while await admin.find(f"/api/v1/namespaces/{name}/serviceaccounts/default") is None:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def make_unrelated(admin: Admin, count: int, advance: Advance) -> None:
    """Make the pods of others."""
    await _side_by_side(
        (
            (f"/api/v1/namespaces/{namespace}/pods", pod)
            for namespace, pod in map(unrelated_pod, range(count))
        ),
        admin,
        advance,
    )


async def make_services(
    admin: Admin, numbers: Iterable[int], port: int, pods: int, advance: Advance
) -> None:
    """Make the InferenceServices; the rest is the operator's and the controllers' work."""
    await _side_by_side(
        ((path_of(number), manifest(number, port, pods)) for number in numbers), admin, advance
    )


async def _side_by_side(
    wanted: Iterable[tuple[str, Object]], admin: Admin, advance: Advance
) -> None:
    queue, made = iter(wanted), itertools.count(1)

    async def work() -> None:
        for path, body in queue:
            await admin.create(path, body)
            advance(next(made))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
