"""Checks of operators: one watches each service, with permissions in each namespace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from headroom.api.kind import PLURAL
from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.facts import Facts, Manifest, option, subject
from headroom.cli.commands.doctor.findings import Diagnosis, problem
from headroom.cli.commands.doctor.operator_deployment import user_of
from headroom.cli.run_options.lease import LEASE_NAME


def operators_share_no_services(facts: Facts) -> Iterator[Diagnosis]:
    """Find operators with different Leases that watch the same namespaces.

    Each of them decides, so every write of one may be undone or repeated by the other.
    """
    running = [one for one in facts.operators if one["spec"].get("replicas") != 0]
    for one, other in combinations(running, 2):
        shared = _shared(option(one, "--namespace"), option(other, "--namespace"))
        if shared and _lease(one) != _lease(other):
            yield problem(
                StatusReason.OPERATORS_OVERLAP,
                subject(other),
                f"operator {subject(one)} evaluates the same services, in {shared}: both decide",
                "uninstall one release, or give each its own namespaces: watch.namespaces of the "
                "chart, --namespace of the operator",
            )


def namespaces_are_read(facts: Facts) -> Iterator[Diagnosis]:
    """Find namespaces that an operator is to watch and may not read."""
    unread = unread_namespaces(facts)
    for one in facts.operators:
        for namespace in option(one, "--namespace"):
            if (user_of(one), namespace) not in unread:
                continue
            account = user_of(one).removeprefix("system:serviceaccount:")
            grant = (
                f"kubectl create rolebinding headroom-operator-watch --namespace {namespace} "
                f"--role headroom-operator-watch --serviceaccount {account}"
            )
            yield problem(
                StatusReason.NAMESPACE_UNREAD,
                f"namespace {namespace}",
                f"operator {subject(one)} may not read it: its services keep their replicas and "
                "routes as they are, and nothing is decided for them",
                f"{grant} (`helm upgrade` of the release restores the Role too); if the namespace "
                "is deleted, remove it from watch.namespaces of the chart",
            )


def unread_namespaces(facts: Facts) -> frozenset[tuple[str, str]]:
    """Return (user, namespace) where the user of an operator may not list the services."""
    watched = {
        (user_of(one), namespace)
        for one in facts.operators
        for namespace in option(one, "--namespace")
    }
    return frozenset(
        (user, permission.namespace)
        for user, permission in facts.denied
        if (permission.verb, permission.resource) == ("list", PLURAL)
        and (user, permission.namespace) in watched
    )


def _shared(one: list[str], other: list[str]) -> str:
    """Name the namespaces that both watch; none named means all."""
    if not one or not other:
        return ", ".join(sorted({*one, *other})) or "all namespaces"
    return ", ".join(sorted({*one} & {*other}))


def _lease(operator: Manifest) -> tuple[str, str]:
    namespaces = option(operator, "--lease-namespace") or [operator["metadata"]["namespace"]]
    return namespaces[0], (option(operator, "--lease-name") or [LEASE_NAME])[0]
