"""Checks of Gateway mode: where the gateway sends the requests of an existing workload."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api import InferenceService, InvalidSpec
from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.facts import Facts, Manifest, subject, uid
from headroom.cli.commands.doctor.findings import Diagnosis, warning


def gateway_port_is_declared(facts: Facts) -> Iterator[Diagnosis]:
    """Find targets whose containers declare ports, and not the one that the gateway uses.

    A declaration is not required: where there is none, nothing can be said.
    """
    for one in facts.services:
        target = facts.targets.get(uid(one))
        if target is None or not one["spec"].get("targetRef"):
            continue
        if (one["spec"].get("routing") or {}).get("mode") != "Gateway":
            continue
        try:
            port = InferenceService.parse(one).spec.runtime.port
        except InvalidSpec:  # another check says so
            continue
        declared = _declared(target)
        if declared and port not in declared:
            yield warning(
                StatusReason.WRONG_PORT,
                subject(one),
                f"the gateway sends requests to port {port} (runtime.port), and the containers of "
                f"{target.get('kind')} {target['metadata']['name']} declare "
                f"{', '.join(map(str, sorted(declared)))}",
                "set spec.runtime.port to the port on which the server listens for requests, and "
                "spec.runtime.metricsPort if its metrics have another",
            )


def _declared(target: Manifest) -> set[int]:
    template = (target.get("spec") or {}).get("template") or {}
    return {
        port["containerPort"]
        for container in (template.get("spec") or {}).get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("protocol", "TCP") == "TCP"
    }
