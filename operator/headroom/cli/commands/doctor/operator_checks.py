"""Checks of several operators in one cluster: of each service, one must decide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.facts import Facts, Manifest, option, subject
from headroom.cli.commands.doctor.findings import Diagnosis, problem
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


def _shared(one: list[str], other: list[str]) -> str:
    """Name the namespaces that both watch; none named means all."""
    if not one or not other:
        return ", ".join(sorted({*one, *other})) or "all namespaces"
    return ", ".join(sorted({*one} & {*other}))


def _lease(operator: Manifest) -> tuple[str, str]:
    namespaces = option(operator, "--lease-namespace") or [operator["metadata"]["namespace"]]
    return namespaces[0], (option(operator, "--lease-name") or [LEASE_NAME])[0]
