"""Finds the paths of objects of kinds that are only known to the API server, by discovery."""

from __future__ import annotations

from headroom.adapters.kubernetes_connection import KubernetesConnection
from headroom.adapters.kubernetes_paths import PLURALS, located, path_to, root
from headroom.errors import NotFound


class PathFinder:
    """Paths of objects; what was discovered is kept."""

    def __init__(self, connection: KubernetesConnection) -> None:
        self._connection = connection
        self._plurals: dict[tuple[str, str], str] = {}
        """Discovered plurals by apiVersion and kind."""

    async def path(self, api_version: str, kind: str, namespace: str | None, name: str) -> str:
        """Return the path of an object; the plural of an unknown kind is discovered once."""
        if kind in PLURALS:
            return path_to(api_version, kind, namespace, name)
        if (api_version, kind) not in self._plurals:
            answer = await self._connection.request("GET", "discover", root(api_version))
            for one in answer.get("resources") or ():
                if "/" not in one["name"] and one.get("namespaced"):
                    self._plurals[api_version, one["kind"]] = one["name"]
            if (api_version, kind) not in self._plurals:
                raise NotFound(f"the API server has no namespaced kind {kind} in {api_version}")
        return located(api_version, self._plurals[api_version, kind], namespace, name)
