"""Checks the operator's prerequisites in the cluster: the current CRD, and permissions.

Repeated, since both may be removed. Without an answer of the API server the last result is kept: an
unavailable API server is no fault of the installation.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Protocol

from headroom.api.kind import GROUP, KIND, PLURAL, VERSION
from headroom.api.schema.crd import custom_resource_definition
from headroom.api.schema.served_schema import missing_fields, served_schema
from headroom.controller.permissions import Permission
from headroom.errors import ClusterError, Unavailable
from headroom.ops.checks import Check

_log = logging.getLogger(__name__)

AGAIN_AFTER_S = 300.0
UNMET_AGAIN_AFTER_S = 5.0
NAMED = 5
"""Fields to name in a message."""
_OWN = frozenset({"leases", "secrets"})
"""Permissions that the operator needs in its own namespace, which may be watched too."""
APPLY_THE_CRD = "apply the CustomResourceDefinition of this version (`headroom crd`)"


class Answer(Protocol):
    """An answer of the API server to a GET."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        ...

    @property
    def body(self) -> bytes:
        """Return the body."""
        ...


class Reviews(Protocol):
    """The Kubernetes API; both methods may raise ClusterError."""

    async def fetch(self, path: str) -> Answer:
        """GET any path."""
        ...

    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """POST."""
        ...


class Prerequisites:
    """Holds the last result of the checks."""

    def __init__(
        self,
        api: Reviews,
        permissions: Iterable[Permission],
        unlisted: Callable[[], Container[str]] = tuple,
    ) -> None:
        """`unlisted` has namespaces that cannot be read while others can: these go on."""
        self._api = api
        self._permissions = tuple(permissions)
        self._unlisted = unlisted
        self._checks = (Check("crd", "not checked yet"), Check("rbac", "not checked yet"))

    def checks(self) -> tuple[Check, ...]:
        """Return the last result."""
        return self._checks

    async def watch(self) -> None:
        """Check until cancelled: every 5 s while something is missing, else every 300 s."""
        while True:
            try:
                found = (
                    Check("crd", await self._about_the_resource()),
                    Check("rbac", await self._about_permissions()),
                )
            except ClusterError as error:
                _log.debug("the prerequisites could not be checked: %s", error)
                await asyncio.sleep(UNMET_AGAIN_AFTER_S)
                continue
            for check, before in zip(found, self._checks, strict=True):
                if check.complaint and check.complaint != before.complaint:
                    _log.warning("%s: %s", check.name, check.complaint)
            self._checks = found
            met = all(check.passed for check in found)
            await asyncio.sleep(AGAIN_AFTER_S if met else UNMET_AGAIN_AFTER_S)

    async def _about_the_resource(self) -> str:
        """Return the defect of the served CRD; empty if there is none."""
        found = await self._api.fetch(f"/openapi/v3/apis/{GROUP}/{VERSION}")
        if found.status in (403, 404):
            return f"the API server serves no {PLURAL}.{GROUP}/{VERSION}: {APPLY_THE_CRD}"
        if found.status != 200:
            raise Unavailable(f"/openapi/v3 answered {found.status}")
        try:
            served = served_schema(json.loads(found.body), KIND)
        except ValueError as error:
            raise Unavailable(f"/openapi/v3 cannot be read: {error}") from error
        missing = missing_fields(_own_schema(), served)
        if not missing:
            return ""
        named = ", ".join(missing[:NAMED]) + (", ..." if len(missing) > NAMED else "")
        return (
            f"the CRD {PLURAL}.{GROUP} is not of the operator's version: it lacks {named}; "
            f"{APPLY_THE_CRD}"
        )

    async def _about_permissions(self) -> str:
        """Return the missing permissions; empty if none is missing."""
        missing = [
            str(one)
            for one in self._permissions
            if not await self._may(one) and not self._others_go_on_without(one)
        ]
        return f"not permitted: {'; '.join(missing)}" if missing else ""

    def _others_go_on_without(self, permission: Permission) -> bool:
        return permission.namespace in self._unlisted() and permission.resource not in _OWN

    async def _may(self, permission: Permission) -> bool:
        answer = await self._api.create(permission.review(), field_manager="headroom")
        status = answer.get("status")
        return isinstance(status, Mapping) and status.get("allowed") is True


def _own_schema() -> Mapping[str, Any]:
    versions = custom_resource_definition()["spec"]["versions"]
    (own,) = [one for one in versions if one["name"] == VERSION]
    schema: Mapping[str, Any] = own["schema"]["openAPIV3Schema"]
    return schema
