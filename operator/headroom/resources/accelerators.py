"""The accelerators that one replica holds, by resource, read from its merged pod template. Pure.

What a spec claims in `accelerator` does not bind its pods: a `podTemplate`, a sidecar or
the workload of a targetRef may request others. So every extended resource is counted, as the
scheduler counts it, and every claim of Dynamic Resource Allocation as one device at least.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from headroom.api.service_spec.spec import Accelerator
from headroom.resources import names
from headroom.resources.overlay import lay_over

if TYPE_CHECKING:
    from headroom.api import InferenceService

Accelerators = Mapping[str, int]
"""Devices per replica by resource, none with zero."""

CLAIM = "resource.k8s.io/claim"
"""Stands for a device of a ResourceClaim, whose number the template does not say."""
MOST = 1 << 20
"""Devices of a pod; more is counted as this, so that sums stay small numbers."""
NOT_COUNTED = (
    "rdma/*",
    "vpc.amazonaws.com/*",
    "networking.gke.io.networks/*",
    "devices.kubevirt.io/*",
)
"""Extended resources that are network devices of a pod and no accelerators."""

_QUANTITY = re.compile(r"\+?(\d{1,18}\.?\d{0,18}|\.\d{1,18})([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
_SUFFIXES = {
    suffix: Decimal(1000) ** power
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), start=-3)
} | {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}
_MAX_EXPONENT = 18


def per_replica(service: InferenceService, template: Mapping[str, Any] | None) -> Accelerators:
    """Count the accelerators of one replica.

    For a target whose kind has its pod template elsewhere, the claim counts: there is nothing
    else to read.
    """
    if template is None:
        accelerator = service.spec.accelerator
        return {accelerator.resource: accelerator.count} if accelerator.count else {}
    return of_template(template)


def of_workload(workload: Mapping[str, Any]) -> Accelerators | None:
    """Count the accelerators of a workload's replica; None where its kind has no pod template."""
    template = template_of(workload)
    return None if template is None else of_template(template)


def template_of(workload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the pod template of a workload; None where its kind has it elsewhere."""
    template = (workload.get("spec") or {}).get("template")
    return template if isinstance(template, Mapping) else None


def of_template(template: Mapping[str, Any]) -> Accelerators:
    """Count the accelerators of a pod as the scheduler does.

    Containers run together, with the sidecars; an init container runs before them, with the
    sidecars that were started before it. Worked: containers 2 and 1, a sidecar 1, an init
    container 8 behind the sidecar: max(2 + 1 + 1, 1 + 8) = 9.
    """
    pod = _map(template.get("spec"))
    together: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for container in _maps(pod.get("initContainers")):
        if own := _of_container(container):  # most hold nothing
            before |= together + own
            if container.get("restartPolicy") == "Always":
                together += own
    for container in _maps(pod.get("containers")):
        together.update(_of_container(container))
    held = together | before if before else together
    held[CLAIM] += len(_list(pod.get("resourceClaims")))
    return {resource: min(MOST, count) for resource, count in held.items() if count}


def of_stored(spec: Mapping[str, Any]) -> Accelerators:
    """Count the accelerators of a stored spec before its first tick; never raises.

    A targetRef's are what it claims, until its workload has been read.
    """
    accelerator, runtime = _map(spec.get("accelerator")), _map(spec.get("runtime"))
    claimed = {str(accelerator.get("resource") or "nvidia.com/gpu"): accelerator.get("count", 1)}
    limits = _map(_map(runtime.get("resources")).get("limits"))
    container = {"name": names.CONTAINER, "resources": {"limits": {**limits, **claimed}}}
    template: Any = {"spec": {"containers": [container]}}
    if not spec.get("targetRef"):
        try:
            template = lay_over(template, _map(runtime.get("podTemplate")))
        except RecursionError:  # no pod has such a template: the API server's own types are flat
            return {}
    return of_template(_map(template))


def counted(held: Accelerators, not_counted: tuple[str, ...] = NOT_COUNTED) -> int:
    """Sum the resources that count as accelerators; a pattern may end with `*`."""
    return sum(
        count
        for resource, count in held.items()
        if not any(fnmatchcase(resource, pattern) for pattern in not_counted)
    )


def difference(service: InferenceService, held: Accelerators) -> str:
    """Say where the spec claims something else than the template; empty if it does not."""
    accelerator = service.spec.accelerator
    if service.spec.target_ref is not None and accelerator == Accelerator():
        return ""  # it need not say any, and the API server stores the default
    claimed = {accelerator.resource: accelerator.count} if accelerator.count else {}
    found = {resource: count for resource, count in held.items() if counted({resource: count})}
    if found == claimed:
        return ""
    return (
        f"the pod template requests {_text(found)} per replica and spec.accelerator claims "
        f"{_text(claimed)}; what the template requests is counted"
    )


def devices(quantity: object) -> int:
    """Read a quantity of Kubernetes as whole devices; 0 for one that no API server accepts."""
    if type(quantity) is str and len(quantity) < 7 and quantity.isascii() and quantity.isdigit():
        return min(MOST, int(quantity))
    text = "" if isinstance(quantity, bool) else str(quantity)[:64].strip()
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return 0
    number, suffix = Decimal(found[1]), found[2] or ""
    if suffix in _SUFFIXES:
        factor = _SUFFIXES[suffix]
    else:
        exponent = int(suffix[1:])
        factor = Decimal(10) ** max(-_MAX_EXPONENT, min(_MAX_EXPONENT, exponent))
    return min(MOST, math.ceil(number * factor))


def _of_container(container: Mapping[str, Any]) -> Counter[str]:
    resources = _map(container.get("resources"))
    found: Counter[str] = Counter()
    for amounts in (_map(resources.get("limits")), _map(resources.get("requests"))):
        for resource, quantity in amounts.items():
            if is_extended(resource):
                found[resource] = max(found[resource], devices(quantity))
    return found


def is_extended(resource: str) -> bool:
    """Return whether a resource is a device: it has a domain, and not kubernetes.io."""
    domain, slash, _ = resource.partition("/")
    if not slash:
        return False
    native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return not native and not resource.startswith("requests.")


def _text(held: Accelerators) -> str:
    parts = (f"{count} {resource}" for resource, count in sorted(held.items()))
    return " and ".join(parts) or "none"


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _maps(value: object) -> Iterator[Mapping[str, Any]]:
    return (one for one in _list(value) if isinstance(one, Mapping))
