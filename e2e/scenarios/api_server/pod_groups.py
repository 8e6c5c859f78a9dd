"""A third-party kind that runs pods and has a scale: its definition and its controller."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self

from reliability.testbed.admin import Object, Refused
from reliability.testbed.testbed import OPERATOR, SYSTEM
from reliability.testbed.world import DEPLOYMENTS, World

GROUP = "scenarios.example.com"
KIND = "PodGroup"
PLURAL = "podgroups"
POD_GROUPS = f"/apis/{GROUP}/v1/namespaces/{{}}/{PLURAL}"

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {**_ANY, "properties": {"replicas": {"type": "integer"}}},
        "status": {
            **_ANY,
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_DEFINITION: Object = {
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": KIND, "plural": PLURAL, "singular": KIND.lower()},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _SCHEMA},
                "subresources": {"status": {}, "scale": _SCALE},
            }
        ],
    },
}


class PodGroups:
    """Use as an async context manager: for the block the kind exists and is looked after."""

    def __init__(self, one: World) -> None:
        self._one, self._admin = one, one.admin

    async def __aenter__(self) -> Self:
        """Define the kind, and begin."""
        await self._admin.create(_DEFINITIONS, _DEFINITION)
        await self._one.wait("the kind is served", self._is_served)
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Remove it, with every object and every right."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._admin.delete(f"{_DEFINITIONS}/{PLURAL}.{GROUP}")
        for kind in ("clusterrolebindings", "clusterroles"):
            await self._admin.delete(f"{_RBAC}/{kind}/{PLURAL}")

    async def permit(self) -> None:
        """Grant the operator what a targetRef of the kind needs."""
        group = {"apiGroups": [GROUP]}
        rules = [
            {**group, "resources": [PLURAL], "verbs": ["get"]},
            {**group, "resources": [f"{PLURAL}/scale"], "verbs": ["get", "update"]},
        ]
        metadata = {"name": PLURAL}
        role = {"metadata": metadata, "rules": rules}
        await self._admin.create(f"{_RBAC}/clusterroles", role)
        account = {"kind": "ServiceAccount", "name": OPERATOR, "namespace": SYSTEM}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PLURAL}
        binding = {"metadata": metadata, "roleRef": reference, "subjects": [account]}
        await self._admin.create(f"{_RBAC}/clusterrolebindings", binding)

    async def _is_served(self) -> bool:
        try:
            return await self._admin.find(POD_GROUPS.format(self._one.namespace)) is not None
        except Refused:  # 429 while its storage begins
            return False

    async def _run(self) -> None:
        """Keep a Deployment below each group, with as many replicas as the group asks for."""
        groups = POD_GROUPS.format(self._one.namespace)
        while True:
            for group in (await self._admin.get(groups))["items"]:
                await self._look_after(groups, group)
            await asyncio.sleep(0.2)

    async def _look_after(self, groups: str, group: Object) -> None:
        metadata, spec = group["metadata"], group["spec"]
        deployments, name = DEPLOYMENTS.format(self._one.namespace), metadata["name"]
        found = await self._admin.find(f"{deployments}/{name}")
        if found is None:
            owner = {
                "apiVersion": group["apiVersion"],
                "kind": KIND,
                "controller": True,
                "name": name,
                "uid": metadata["uid"],
            }
            below = {"name": name, "ownerReferences": [owner]}
            found = await self._admin.create(deployments, {"metadata": below, "spec": spec})
        elif found["spec"]["replicas"] != spec["replicas"]:
            wanted = {"spec": {"replicas": spec["replicas"]}}
            await self._admin.patch(f"{deployments}/{name}", wanted)
        labels = spec["selector"]["matchLabels"]
        status = {
            "replicas": found.get("status", {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in labels.items()),
        }
        if group.get("status") != status:
            await self._admin.patch(f"{groups}/{name}/status", {"status": status})
