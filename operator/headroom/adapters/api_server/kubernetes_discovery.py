"""Finds the paths of objects of kinds that are only known to the API server, by discovery."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection
from headroom.adapters.api_server.kubernetes_paths import PLURALS, located, path_to, root
from headroom.errors import NotFound, UnknownKind


class PathFinder:
    """Paths of objects; discovered plurals are kept."""

    def __init__(self, connection: KubernetesConnection) -> None:
        self._connection = connection
        self._plurals: dict[tuple[str, str], str] = {}
        """Discovered plurals by apiVersion and kind."""

    async def path(self, api_version: str, kind: str, namespace: str | None, name: str) -> str:
        """Return the path of an object; the plural of an unknown kind is discovered once.

        Raises UnknownKind where the API server has none.
        """
        if kind in PLURALS:
            return path_to(api_version, kind, namespace, name)
        if (api_version, kind) not in self._plurals:
            await self._discover(api_version)
            if (api_version, kind) not in self._plurals:
                said = f"the API server has no namespaced kind {kind} in {api_version}"
                kinds = (known for of, known in self._plurals if of == api_version)
                raise UnknownKind(f"{said}{_meant(kind, kinds)}")
        return located(api_version, self._plurals[api_version, kind], namespace, name)

    async def _discover(self, api_version: str) -> None:
        try:
            answer = await self._connection.request("GET", "discover", root(api_version))
        except NotFound as error:
            raise UnknownKind(f"the API server has no apiVersion {api_version}") from error
        for one in answer.get("resources") or ():
            if "/" not in one["name"] and one.get("namespaced"):
                self._plurals[api_version, one["kind"]] = one["name"]


def _meant(kind: str, known: Iterable[str]) -> str:
    """Return a question after a kind with a similar name; empty if there is none."""
    close = get_close_matches(kind, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
