"""The permissions that the operator needs, as deploy/base/rbac.yaml grants them. Pure.

A test compares the two: every grant is needed, and every need is granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.certificates.values import CA_SECRET, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One verb on one resource, in one namespace or, where none is named, in all."""

    verb: str
    group: str
    resource: str
    """Plural, with a subresource behind a slash."""
    namespace: str = ""
    name: str = ""
    """Only on the object of this name."""

    def __str__(self) -> str:
        """Name it as `kubectl auth can-i` takes it: `list pods -n vision`."""
        plural, _, subresource = self.resource.partition("/")
        kind = plural + (f".{self.group}" if self.group else "")
        words = f"{self.verb} {kind}" + (f"/{self.name}" if self.name else "")
        words += f" --subresource={subresource}" if subresource else ""
        return words + (f" -n {self.namespace}" if self.namespace else " -A")

    def review(self) -> dict[str, Any]:
        """Return the request that asks the API server whether the caller has it."""
        plural, _, subresource = self.resource.partition("/")
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": plural,
            "subresource": subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {k: v for k, v in attributes.items() if v}},
        }


_PER_NAMESPACE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("headroom.dev", "inferenceservices"): ("get", "list", "watch"),
    ("headroom.dev", "inferenceservices/status"): ("patch",),
    ("headroom.dev", "inferenceservices/finalizers"): ("update",),
    ("apps", "deployments"): ("get", "list", "create", "patch"),
    ("apps", "deployments/scale"): ("patch",),
    ("apps", "statefulsets/scale"): ("patch",),
    ("apps", "replicasets"): ("get",),
    ("apps", "statefulsets"): ("get",),
    ("autoscaling", "horizontalpodautoscalers"): ("list",),
    ("", "services"): ("get", "create", "patch"),
    ("", "serviceaccounts"): ("get", "create", "patch"),
    ("policy", "poddisruptionbudgets"): ("get", "create", "patch"),
    ("", "pods"): ("list", "watch"),
    ("", "pods/status"): ("patch",),
    ("events.k8s.io", "events"): ("create",),
}
_BEST_EFFORT: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "pods/eviction"): ("create",),
    ("discovery.k8s.io", "endpointslices"): ("get", "list", "patch"),
}
"""Evicts replicas that are slow, fail or are overloaded; without it capacity is added for them.
Hands Services back after gateways were removed; without it they lead to what no longer exists."""
_MARKS: Mapping[tuple[str, str], tuple[str, ...]] = {("", "pods"): ("patch",)}
_ROUTING: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("discovery.k8s.io", "endpointslices"): ("get", "list", "create", "patch"),
}
_GATEWAYS: Mapping[tuple[str, str], tuple[str, ...]] = {("", "pods"): ("list", "watch")}
_LEASES = ("coordination.k8s.io", "leases")


def on_services(namespaces: Iterable[str] = ()) -> Iterator[Permission]:
    """Return the permissions for services of these namespaces; none named means all."""
    return _in_each(namespaces, _PER_NAMESPACE)


def best_effort(namespaces: Iterable[str] = ()) -> Iterator[Permission]:
    """Return the permissions that the operator uses and can do without."""
    return _in_each(namespaces, _BEST_EFFORT)


def on_marks(namespaces: Iterable[str] = ()) -> Iterator[Permission]:
    """Return the permissions of `--mark-pods`, which allow changes of any pod's image."""
    return _in_each(namespaces, _MARKS)


def on_gateways(
    namespaces: Iterable[str], gateway_namespace: str, *, reviews_tokens: bool
) -> Iterator[Permission]:
    """Return the permissions for routing through the gateways of a namespace."""
    yield from _in_each(namespaces, _ROUTING)
    yield from _in_each([gateway_namespace], _GATEWAYS)
    if reviews_tokens:
        yield Permission(verb="create", group="authentication.k8s.io", resource="tokenreviews")


def _in_each(
    namespaces: Iterable[str], rules: Mapping[tuple[str, str], tuple[str, ...]]
) -> Iterator[Permission]:
    for namespace in tuple(namespaces) or ("",):
        for (group, resource), verbs in rules.items():
            for verb in verbs:
                yield Permission(verb=verb, group=group, resource=resource, namespace=namespace)


def on_lease(namespace: str, name: str) -> Iterator[Permission]:
    """Return the permissions that leader election needs."""
    group, resource = _LEASES
    for verb in ("get", "update"):
        yield Permission(verb=verb, group=group, resource=resource, namespace=namespace, name=name)
    yield Permission(verb="create", group=group, resource=resource, namespace=namespace)


def on_certificates(namespace: str, *, issues: bool) -> Iterator[Permission]:
    """Return the permissions on the Secrets of gateways, activators and operator, by name."""
    names = (CA_SECRET, *(role.secret for role in Role)) if issues else (Role.OPERATOR.secret,)
    for name in names:
        for verb in ("get", "update") if issues else ("get",):
            yield Permission(
                verb=verb, group="", resource="secrets", namespace=namespace, name=name
            )
