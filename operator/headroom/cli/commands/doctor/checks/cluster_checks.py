"""Checks of the cluster: version, CRD, operator, permissions, clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headroom.api.kind import VERSION
from headroom.api.reasons import StatusReason
from headroom.api.schema.crd import NAME, custom_resource_definition
from headroom.api.timestamps import epoch_s
from headroom.cli.commands.doctor.checks.operator_checks import unread_namespaces
from headroom.cli.commands.doctor.facts import Facts, service_status, subject
from headroom.cli.commands.doctor.findings import CLUSTER, Diagnosis, note, problem

LEAST_VERSION = (1, 30)
SKEW_S = 5.0
"""Kubernetes' times are whole seconds, and a write takes time: less is no skew."""
LATE_WRITE_S = 25.0
"""Status is written within a tick's deadline of 20 s after its decision."""
MOST_LACKED = 3
"""Permissions that a finding lists; of more it names the first: a role or its binding is gone."""
_INSTALL = "install the operator: kubectl apply --server-side -k deploy, or its Helm chart"


def kubernetes_is_supported(facts: Facts) -> Iterator[Diagnosis]:
    """Find versions without the CRD rules and pod fields that Headroom uses."""
    if facts.version is not None and facts.version < LEAST_VERSION:
        have, need = (".".join(map(str, each)) for each in (facts.version, LEAST_VERSION))
        yield problem(
            StatusReason.KUBERNETES_TOO_OLD,
            CLUSTER,
            f"Kubernetes is {have}, and the oldest supported version is {need}",
            f"upgrade the cluster to {need} or newer",
        )


def crd_is_current(facts: Facts) -> Iterator[Diagnosis]:
    """Find a missing or outdated CRD, which drops newer fields silently."""
    if not facts.was_read("CustomResourceDefinition"):
        return
    remedy = "headroom crd | kubectl apply --server-side --force-conflicts -f -"
    if facts.crd is None:
        yield problem(
            StatusReason.CRD_MISSING, NAME, "the CustomResourceDefinition is not installed", remedy
        )
        return
    stored = _schema(facts.crd)
    if stored is None:
        yield problem(StatusReason.CRD_OUTDATED, NAME, f"it has no version {VERSION}", remedy)
        return
    path = difference(stored, _schema(custom_resource_definition()))
    if path is not None:
        why = f"its schema differs from this command's, first at {path or '/'}"
        hint = f"{remedy} (or use the command of the installed version)"
        yield problem(StatusReason.CRD_OUTDATED, NAME, why, hint)


def operator_runs(facts: Facts) -> Iterator[Diagnosis]:
    """Find a missing, scaled-down or unavailable operator."""
    if not facts.was_read("Deployment"):
        return
    if not facts.operators:
        yield problem(
            StatusReason.OPERATOR_MISSING,
            CLUSTER,
            "no Deployment with label app.kubernetes.io/part-of=headroom runs the operator",
            _INSTALL,
        )
    for one in facts.operators:
        metadata = one["metadata"]
        within = f"--namespace {metadata['namespace']}"
        if one["spec"].get("replicas") == 0:
            yield problem(
                StatusReason.OPERATOR_DOWN,
                subject(one),
                "the operator is scaled to 0: no decisions are made",
                f"kubectl scale deployment/{metadata['name']} {within} --replicas 1",
            )
        elif not one.get("status", {}).get("availableReplicas"):
            yield problem(
                StatusReason.OPERATOR_DOWN,
                subject(one),
                "the operator is not available: no decisions are made",
                f"kubectl logs deployment/{metadata['name']} {within}",
            )


def operator_has_permissions(facts: Facts) -> Iterator[Diagnosis]:
    """Find permissions that the operator's ServiceAccount lacks, where it may read services.

    One finding per account.
    """
    unread = unread_namespaces(facts)
    by_user: dict[str, list[str]] = {}
    for user, permission in facts.denied:
        if (user, permission.namespace) in unread:
            continue
        by_user.setdefault(user, []).append(str(permission))
    for user, lacks in by_user.items():
        shown = lacks if len(lacks) <= MOST_LACKED else lacks[:1]
        more = f", and lacks {len(lacks) - 1} more permissions" if len(shown) < len(lacks) else ""
        yield problem(
            StatusReason.PERMISSION_MISSING,
            user,
            f"it may not {'; '.join(shown)}{more}",
            "apply the shipped roles and their bindings: helm upgrade of the chart, or "
            "deploy/base/rbac.yaml",
        )


def clocks_agree(facts: Facts) -> Iterator[Diagnosis]:
    """Find clocks that differ: holders of Leases write their time, the API server its own."""
    remedy = "synchronize its clock (timedatectl set-ntp true): ages and cold starts are wrong"
    for lease in facts.leases:
        skew_s = lease_skew_s(lease)
        if skew_s is not None and abs(skew_s) > SKEW_S:
            why = f"its clock is {_ahead(skew_s)} the API server's"
            yield problem(StatusReason.CLOCK_SKEW, lease["metadata"]["name"], why, remedy)
    skew_s = decision_skew_s(facts)
    if skew_s is not None:
        why = f"the operator's clock is {_ahead(skew_s)} the API server's, by its decision times"
        yield problem(StatusReason.CLOCK_SKEW, "operator", why, f"on its node: {remedy}")


def unread_parts(facts: Facts) -> Iterator[Diagnosis]:
    """Note every kind that could not be read, and so was not checked."""
    for one in facts.unread:
        yield note(
            StatusReason.NOT_CHECKED,
            one.what,
            f"it could not be read: {one.why}",
            "run the doctor as a user with the permission, such as a cluster administrator"
            if one.denied
            else "run the doctor again; what was not read is not checked",
        )


def lease_skew_s(lease: Mapping[str, Any]) -> float | None:
    """Return how far its holder's clock is ahead; None if unknown."""
    renewed = lease.get("spec", {}).get("renewTime")
    written = _written_s(lease, lambda entry: True)
    if not renewed or written is None:
        return None
    return epoch_s(renewed) - written


def decision_skew_s(facts: Facts) -> float | None:
    """Return how far the operator's clock is ahead, by its status writes; None if it agrees.

    A decision is written after it is made, but conditions may be written alone, much later. So one
    decision in the future proves a clock that is ahead, and only all being old one that is behind.
    """
    skews = []
    for service in facts.services:
        decision = service_status(service).decision
        written = _written_s(service, lambda entry: entry.get("subresource") == "status")
        if decision and decision.time and written is not None:
            skews.append(epoch_s(decision.time) - written)
    if skews and max(skews) > SKEW_S:
        return max(skews)
    if skews and max(skews) < -LATE_WRITE_S:
        return max(skews)
    return None


def difference(one: Any, other: Any) -> str | None:
    """Return the path of the first difference of two JSON values; None if they are equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                return f"/{key}"
            if (found := difference(one[key], other[key])) is not None:
                return f"/{key}{found}"
        return None
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            if (found := difference(*pair)) is not None:
                return f"/{index}{found}"
        return None
    return None if one == other else ""


def _schema(crd: Mapping[str, Any]) -> Any:
    for version in crd.get("spec", {}).get("versions") or ():
        if version.get("name") == VERSION:
            return version.get("schema", {}).get("openAPIV3Schema")
    return None


def _written_s(one: Mapping[str, Any], chosen: Any) -> float | None:
    times = [
        epoch_s(entry["time"])
        for entry in one["metadata"].get("managedFields") or ()
        if entry.get("time") and chosen(entry)
    ]
    return max(times, default=None)


def _ahead(skew_s: float) -> str:
    return f"{abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'}"
