"""Reads from the cluster that may fail: one that is denied or fails is noted, the rest go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import orjson

from headroom.certificates.values import Role
from headroom.cli.commands.doctor.facts import Answered, Manifest, Unread, option, service_status
from headroom.cli.commands.doctor.operator_deployment import (
    gateway_namespace,
    needed_by,
    user_of,
)
from headroom.cli.commands.doctor.pod_probe import Reader, ask_pod
from headroom.controller.permissions import Permission
from headroom.errors import ClusterError, Forbidden, NotFound

AT_ONCE = 16
"""Concurrent requests to the API server."""

_Value = TypeVar("_Value")


@dataclass
class ClusterReading:
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
        """Read; return `failed` where that is denied or fails, `missing` where it is not there."""
        async with self._few:
            try:
                return await read()
            except NotFound:
                return failed if missing is None else missing
            except ClusterError as error:
                denied = isinstance(error, Forbidden)
                self.unread.setdefault(what, Unread(what=what, why=str(error), denied=denied))
                return failed

    async def listed(
        self, api_version: str, kind: str, namespace: str | None, selector: str = ""
    ) -> list[dict[str, Any]]:
        """List objects of a kind; none where that fails."""
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
            denied = found.status in (401, 403)
            why = f"{path} gave {found.status}"
            self.unread.setdefault(kind, Unread(what=kind, why=why, denied=denied))
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


def _until_s(secret: Manifest) -> float | None:
    from headroom.ops.certificate_secrets import decoded, leaf_of  # noqa: PLC0415  (cryptography)

    leaf = leaf_of(decoded(secret), ())
    return leaf.certificate.until_s if leaf is not None and leaf.trusts else None


def _path(api_version: str, kind: str, namespace: str, name: str) -> str:
    """Return the path of an object of any kind; the plural is formed as Kubernetes' own kinds."""
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{kind.lower()}s/{name}"
