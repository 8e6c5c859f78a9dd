"""Reads an operator's Deployment: its user, its gateways, the permissions it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headroom.cli.commands.doctor.facts import Manifest, option
from headroom.controller.permissions import (
    Permission,
    on_certificates,
    on_gateways,
    on_marks,
    on_services,
)


def gateway_namespace(operator: Manifest) -> str:
    """Return the namespace of the gateways that an operator configures; empty if none."""
    return next(iter(option(operator, "--gateway-namespace")), "")


def needed_by(operator: Manifest, namespaces: Sequence[str]) -> Iterator[Permission]:
    """Yield the permissions that an operator needs, as it was started."""
    yield from on_services(namespaces)
    if option(operator, "--mark-pods") or _variables(operator).get("HEADROOM_MARK_PODS") == "true":
        yield from on_marks(namespaces)
    if gateways := gateway_namespace(operator):
        reviews = not option(operator, "--no-review-gateway-tokens")
        yield from on_gateways(namespaces, gateways, reviews_tokens=reviews)
        issues = option(operator, "--gateway-certificates") != ["secret"]
        yield from on_certificates(gateways, issues=issues)


def _variables(operator: Manifest) -> dict[str, str]:
    containers = operator["spec"]["template"]["spec"]["containers"]
    return {
        one["name"]: str(one.get("value")) for each in containers for one in each.get("env") or ()
    }


def runs_the_operator(deployment: Manifest) -> bool:
    """Return whether a Deployment runs the operator; names and labels differ by chart."""
    template = (deployment.get("spec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or ()
    return any("run" in (one.get("args") or ())[:1] for one in containers)


def user_of(operator: Manifest) -> str:
    """Return the user as whom an operator asks the API server."""
    account = operator["spec"]["template"]["spec"].get("serviceAccountName", "default")
    return f"system:serviceaccount:{operator['metadata']['namespace']}:{account}"
