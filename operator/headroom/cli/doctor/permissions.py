"""What the operator has to be allowed to do, as deploy/base/rbac.yaml grants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headroom.cli.doctor.facts import Permission


def _each(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Iterator[Permission]:
    for resource in resources:
        for verb in verbs:
            yield Permission(verb=verb, group=group, resource=resource)


NEEDED: tuple[Permission, ...] = (
    *_each("headroom.dev", ["inferenceservices"], ["list", "watch"]),
    *_each("headroom.dev", ["inferenceservices/status"], ["patch"]),
    *_each("apps", ["deployments"], ["get", "create", "patch"]),
    *_each("apps", ["deployments/scale"], ["patch"]),
    *_each("", ["services", "serviceaccounts"], ["get", "create", "patch"]),
    *_each("policy", ["poddisruptionbudgets"], ["get", "create", "patch"]),
    *_each("", ["pods"], ["list"]),
    *_each("events.k8s.io", ["events"], ["create"]),
)
"""Without any of these something does not work for any service."""
