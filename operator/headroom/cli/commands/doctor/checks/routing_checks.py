"""Checks of Gateway mode: where the gateway sends the requests of an existing workload."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api import InferenceService, InvalidSpec
from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.facts import Facts, Manifest, service_status, subject, uid
from headroom.cli.commands.doctor.findings import Diagnosis, warning


def gateway_port_is_declared(facts: Facts) -> Iterator[Diagnosis]:
    """Find targets whose containers declare ports, and not the one that the gateway uses.

    A declaration is not required: where there is none, nothing can be said.
    """
    for one in facts.services:
        target = facts.targets.get(uid(one))
        if target is None or not one["spec"].get("targetRef"):
            continue
        if not _is_routed(one):
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


def policy_means_what_it_says(facts: Facts) -> Iterator[Diagnosis]:
    """Find NetworkPolicies that restrict access to the replicas of a routed service.

    Behind a gateway every client of the cluster has the gateway's address.
    """
    for one in filter(_is_routed, facts.services):
        labels = _labels(service_status(one).selector)
        names = [
            policy["metadata"]["name"]
            for policy in facts.policies
            if policy["metadata"]["namespace"] == one["metadata"]["namespace"]
            and labels
            and _restricts(policy["spec"], labels)
        ]
        if names:
            yield warning(
                StatusReason.POLICY_UNDONE,
                subject(one),
                f"NetworkPolicy {', '.join(sorted(names))} restricts the clients of its replicas, "
                "but in Gateway mode it sees only the gateway, which admits every client",
                "set spec.routing.mode to Service, or restrict the clients in a NetworkPolicy of "
                "the gateways, at the service's port: operator/guide/GATEWAY.md",
            )


def _is_routed(one: Manifest) -> bool:
    return (one["spec"].get("routing") or {}).get("mode") == "Gateway"


def _labels(selector: str) -> dict[str, str]:
    """Parse a selector of equalities, as status has it."""
    pairs = (each.partition("=") for each in selector.split(",") if "=" in each)
    return {key: value for key, _, value in pairs}


def _restricts(spec: Manifest, labels: dict[str, str]) -> bool:
    """Return whether a policy restricts ingress of pods with these labels.

    Pods have more labels than are known here, so a selector by expressions is not judged.
    """
    selector = spec.get("podSelector") or {}
    if "Ingress" not in spec.get("policyTypes", ("Ingress",)) or selector.get("matchExpressions"):
        return False
    wanted = selector.get("matchLabels") or {}
    anyone = any(not rule.get("from") for rule in spec.get("ingress") or ())
    return not anyone and wanted.items() <= labels.items()


def _declared(target: Manifest) -> set[int]:
    template = (target.get("spec") or {}).get("template") or {}
    return {
        port["containerPort"]
        for container in (template.get("spec") or {}).get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("protocol", "TCP") == "TCP"
    }
