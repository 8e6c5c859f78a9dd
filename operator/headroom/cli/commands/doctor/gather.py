"""Reads the facts from the cluster.

A read that is denied or fails is noted, and the rest go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar

import orjson

from headroom.api.crd import NAME as CRD_NAME
from headroom.api.kind import API_VERSION, KIND
from headroom.certificates.values import Role
from headroom.cli.commands.doctor.facts import (
    Answered,
    Facts,
    Manifest,
    Unread,
    option,
    service_status,
    uid,
)
from headroom.cli.commands.doctor.pod_probe import Reader, ask_pod
from headroom.controller.permissions import (
    Permission,
    on_certificates,
    on_gateways,
    on_marks,
    on_services,
)
from headroom.errors import ClusterError, NotFound

PART_OF = "app.kubernetes.io/part-of=headroom"
AT_ONCE = 16
"""Concurrent requests to the API server."""

_Value = TypeVar("_Value")


async def gathered(api: Reader, namespace: str | None) -> Facts:
    """Read the facts of one namespace, or of all.

    Raises ClusterError where the API server does not answer at all.
    """
    version, now_s = await _server(api)
    reading = _Reading(api)
    crd = await reading.of(
        "CustomResourceDefinition", lambda: _found(api, CRD_NAME), None, missing=None
    )
    services, operators, autoscalers, policies, budgets, nodes = await asyncio.gather(
        reading.listed(API_VERSION, KIND, namespace),
        reading.listed("apps/v1", "Deployment", None, PART_OF),
        reading.listed("autoscaling/v2", "HorizontalPodAutoscaler", namespace),
        reading.listed("networking.k8s.io/v1", "NetworkPolicy", namespace),
        reading.listed("policy/v1", "PodDisruptionBudget", namespace),
        reading.listed("v1", "Node", None),
    )
    operators = [one for one in operators if runs_the_operator(one)]
    leases = await reading.listed("coordination.k8s.io/v1", "Lease", "kube-node-lease")
    for space in sorted({one["metadata"]["namespace"] for one in operators}):
        leases += await reading.listed("coordination.k8s.io/v1", "Lease", space)
    certificates = await reading.certificates(operators)
    targets = await asyncio.gather(*(reading.target(one) for one in services))
    pods = await asyncio.gather(*(reading.pods(one) for one in services))
    answers = await asyncio.gather(*map(reading.answer, services, pods))
    return Facts(
        version=version,
        now_s=now_s,
        crd=crd,
        operators=tuple(operators),
        denied=tuple(await reading.denied(operators, namespace)),
        services=tuple(services),
        targets={uid(one): found for one, found in zip(services, targets, strict=True)},
        autoscalers=tuple(autoscalers),
        policies=tuple(policies),
        budgets=tuple(budgets),
        nodes=tuple(nodes),
        pods={uid(one): tuple(found) for one, found in zip(services, pods, strict=True)},
        answers={
            uid(one): answer
            for one, answer in zip(services, answers, strict=True)
            if answer is not None
        },
        leases=tuple(leases),
        certificates=certificates,
        unread=tuple(reading.unread.values()),
    )


def gateway_namespace(operator: Manifest) -> str:
    """Return the namespace of the gateways that an operator configures; empty without."""
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
    pod = deployment["spec"]["template"]["spec"]
    return any("run" in (one.get("args") or ())[:1] for one in pod["containers"])


@dataclass
class _Reading:
    """Reads that may fail, a few at a time."""

    api: Reader
    unread: dict[str, Unread] = field(default_factory=dict)
    _few: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def of(
        self,
        what: str,
        read: Callable[[], Awaitable[_Value]],
        failed: _Value,
        *,
        missing: _Value | None = None,
    ) -> _Value:
        async with self._few:
            try:
                return await read()
            except NotFound:
                return failed if missing is None else missing
            except ClusterError as error:
                self.unread.setdefault(what, Unread(what=what, why=str(error)))
                return failed

    async def listed(
        self, api_version: str, kind: str, namespace: str | None, selector: str = ""
    ) -> list[dict[str, Any]]:
        nothing: list[dict[str, Any]] = []
        return await self.of(
            kind, lambda: self.api.list_all(api_version, kind, namespace, selector), nothing
        )

    async def target(self, service: Manifest) -> Manifest | None:
        """Read the workload that a service scales; one that cannot be read counts as existing."""
        metadata = service["metadata"]
        named = service["spec"].get("targetRef") or {}
        api_version, kind = named.get("apiVersion", "apps/v1"), named.get("kind", "Deployment")
        path = _path(api_version, kind, metadata["namespace"], named.get("name", metadata["name"]))
        found = await self.of(kind, lambda: self.api.fetch(path), None)
        if found is not None and found.status == 200:
            return orjson.loads(found.body)  # type: ignore[no-any-return]
        if found is not None and found.status == 404:
            return None
        if found is not None:
            self.unread.setdefault(kind, Unread(what=kind, why=f"{path} gave {found.status}"))
        return {"kind": kind, "metadata": {"name": named.get("name", metadata["name"])}}

    async def certificates(self, operators: Sequence[Manifest]) -> dict[str, float | None]:
        """Read when the certificates of the gateways' connections expire."""
        found: dict[str, float | None] = {}
        nothing: Manifest = {}
        for namespace in sorted({gateway_namespace(one) for one in operators} - {""}):
            for role in Role:
                secret = await self.of(
                    "Secret", partial(self._secret, namespace, role.secret), nothing
                )
                if "Secret" not in self.unread:
                    found[f"{namespace}/{role.secret}"] = _until_s(secret)
        return found

    async def _secret(self, namespace: str, name: str) -> Manifest:
        return await self.api.get("v1", "Secret", namespace, name)

    async def pods(self, service: Manifest) -> list[dict[str, Any]]:
        """Read the pods of a service; none before it has a status."""
        selector = service_status(service).selector
        if not selector:
            return []
        return await self.listed("v1", "Pod", service["metadata"]["namespace"], selector)

    async def answer(self, service: Manifest, pods: Sequence[dict[str, Any]]) -> Answered | None:
        """Ask one of a service's pods for its metrics; None if none runs or access is denied."""
        if not service_status(service).selector:
            return None
        return await self.of("pods/proxy", lambda: ask_pod(self.api, service, pods), None)

    async def denied(
        self, operators: Sequence[Manifest], namespace: str | None
    ) -> list[tuple[str, Permission]]:
        """Return the permissions that the operator's ServiceAccount lacks."""
        asked = [
            (user_of(one), permission)
            for one in operators
            for permission in needed_by(
                one, [namespace] if namespace else option(one, "--namespace")
            )
        ]
        allowed = await asyncio.gather(
            *(self._allowed(user, permission) for user, permission in asked)
        )
        return [pair for pair, yes in zip(asked, allowed, strict=True) if not yes]

    async def _allowed(self, user: str, permission: Permission) -> bool:
        account = user.rsplit(":", 2)
        spec = permission.review()["spec"] | {
            "user": user,
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{account[1]}"],
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        kind = "SubjectAccessReview"
        default: dict[str, Any] = {"status": {"allowed": True}}
        found = await self.of(
            kind, lambda: self.api.create(review, field_manager="headroom"), default
        )
        return bool(found.get("status", {}).get("allowed"))


async def _server(api: Reader) -> tuple[tuple[int, int] | None, float | None]:
    found = await api.fetch("/version")
    now_s = parsedate_to_datetime(found.date).timestamp() if found.date else time.time()
    if found.status != 200:
        return None, now_s
    said = orjson.loads(found.body)
    # Some providers write the minor version as "31+".
    return (int(said["major"]), int(said["minor"].rstrip("+"))), now_s


async def _found(api: Reader, name: str) -> Manifest | None:
    return await api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name)


def user_of(operator: Manifest) -> str:
    """Return the user as whom an operator asks the API server."""
    account = operator["spec"]["template"]["spec"].get("serviceAccountName", "default")
    return f"system:serviceaccount:{operator['metadata']['namespace']}:{account}"


def _until_s(secret: Manifest) -> float | None:
    from headroom.ops.certificate_secrets import decoded, leaf_of  # noqa: PLC0415  (cryptography)

    leaf = leaf_of(decoded(secret), ())
    return leaf.certificate.until_s if leaf is not None and leaf.trusts else None


def _path(api_version: str, kind: str, namespace: str, name: str) -> str:
    """Return the path of an object of any kind; the plural is formed as Kubernetes' own kinds."""
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{kind.lower()}s/{name}"
