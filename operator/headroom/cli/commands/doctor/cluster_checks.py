"""Checks of what all services share: Kubernetes, the CRD, the operator, its rights, the clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headroom.api.crd import NAME, custom_resource_definition
from headroom.api.kind import VERSION
from headroom.api.reasons import StatusReason
from headroom.api.timestamps import epoch_s
from headroom.cli.commands.doctor.facts import Facts
from headroom.cli.commands.doctor.findings import CLUSTER, Diagnosis, note, problem

LEAST_VERSION = (1, 30)
SKEW_S = 5.0
"""Times of Kubernetes are whole seconds, and a write takes some: less is no skew."""
LATE_WRITE_S = 25.0
"""Status is written within a tick's deadline of 20 s after its decision."""
_INSTALL = "install the operator: kubectl apply --server-side -k deploy, or its Helm chart"


def kubernetes_is_new_enough(facts: Facts) -> Iterator[Diagnosis]:
    """The CRD's rules and the fields of pods that are used came with this version."""
    if facts.version is not None and facts.version < LEAST_VERSION:
        have, need = (".".join(map(str, each)) for each in (facts.version, LEAST_VERSION))
        yield problem(
            StatusReason.KUBERNETES_TOO_OLD,
            CLUSTER,
            f"Kubernetes is {have}, and {need} is the oldest that works",
            f"upgrade the cluster to {need} or newer",
        )


def the_definition_is_current(facts: Facts) -> Iterator[Diagnosis]:
    """An older CRD drops fields of newer services silently."""
    if not facts.was_read("CustomResourceDefinition"):
        return
    remedy = "headroom crd | kubectl apply --server-side --force-conflicts -f -"
    if facts.crd is None:
        yield problem(StatusReason.CRD_MISSING, NAME, "the resource is not defined", remedy)
        return
    stored = _schema(facts.crd)
    if stored is None:
        yield problem(StatusReason.CRD_OUTDATED, NAME, f"it has no version {VERSION}", remedy)
        return
    path = difference(stored, _schema(custom_resource_definition()))
    if path is not None:
        why = f"its schema is not that of this command; the first difference is at {path or '/'}"
        hint = f"{remedy} (or use the command of the version that is installed)"
        yield problem(StatusReason.CRD_OUTDATED, NAME, why, hint)


def the_operator_runs(facts: Facts) -> Iterator[Diagnosis]:
    """Somebody has to decide."""
    if not facts.was_read("Deployment"):
        return
    if not facts.operators:
        yield problem(
            StatusReason.OPERATOR_MISSING,
            CLUSTER,
            "no Deployment labelled app.kubernetes.io/part-of=headroom runs the operator",
            _INSTALL,
        )
    for one in facts.operators:
        metadata, subject = one["metadata"], _subject(one)
        within = f"--namespace {metadata['namespace']}"
        if one["spec"].get("replicas") == 0:
            yield problem(
                StatusReason.OPERATOR_DOWN,
                subject,
                "the operator is scaled to 0: nothing is decided",
                f"kubectl scale deployment/{metadata['name']} {within} --replicas 1",
            )
        elif not one.get("status", {}).get("availableReplicas"):
            yield problem(
                StatusReason.OPERATOR_DOWN,
                subject,
                "the operator is not available: nothing is decided",
                f"kubectl logs deployment/{metadata['name']} {within}",
            )


def the_operator_may_do_what_it_does(facts: Facts) -> Iterator[Diagnosis]:
    """Each right that it lacks, under the name that it acts as."""
    for user, permission in facts.denied:
        yield problem(
            StatusReason.PERMISSION_MISSING,
            user,
            f"it may not {permission}",
            "apply the ClusterRole that is shipped: deploy/base/rbac.yaml, or the Helm chart",
        )


def the_clocks_agree(facts: Facts) -> Iterator[Diagnosis]:
    """Who renews a Lease writes its own time, and the API server notes the time of the write."""
    remedy = "synchronize its clock (timedatectl set-ntp true): ages and cold starts are off by it"
    for lease in facts.leases:
        skew_s = lease_skew_s(lease)
        if skew_s is not None and abs(skew_s) > SKEW_S:
            why = f"its clock is {_ahead(skew_s)} the API server's"
            yield problem(StatusReason.CLOCK_SKEW, lease["metadata"]["name"], why, remedy)
    skew_s = decision_skew_s(facts)
    if skew_s is not None:
        why = f"the operator's clock is {_ahead(skew_s)} the API server's, by its decisions"
        yield problem(StatusReason.CLOCK_SKEW, "operator", why, f"on its node: {remedy}")


def what_was_not_read(facts: Facts) -> Iterator[Diagnosis]:
    """What was not looked at is not sound: say so."""
    for one in facts.unread:
        yield note(
            StatusReason.NOT_CHECKED,
            one.what,
            f"it could not be read: {one.why}",
            "run the doctor as somebody who may, such as a cluster administrator",
        )


def lease_skew_s(lease: Mapping[str, Any]) -> float | None:
    """Give by how much its holder's clock is ahead; None where it does not say."""
    renewed = lease.get("spec", {}).get("renewTime")
    written = _written_s(lease, lambda entry: True)
    if not renewed or written is None:
        return None
    return epoch_s(renewed) - written


def decision_skew_s(facts: Facts) -> float | None:
    """Give by how much the operator's clock is ahead, by its status writes; None where it agrees.

    A decision is written after it was made, but conditions may be written alone, long after it. So
    one that lies in the future proves a clock ahead, and only all being old one behind.
    """
    skews = []
    for service in facts.services:
        decided = (service.get("status", {}).get("decision") or {}).get("time")
        written = _written_s(service, lambda entry: entry.get("subresource") == "status")
        if decided and written is not None:
            skews.append(epoch_s(decided) - written)
    if skews and max(skews) > SKEW_S:
        return max(skews)
    if skews and max(skews) < -LATE_WRITE_S:
        return max(skews)
    return None


def difference(one: Any, other: Any) -> str | None:
    """Give the path of the first place where two JSON values differ; None where they agree."""
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


def _subject(one: Mapping[str, Any]) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"
