"""Keeps the encoding of each resource until its version changes: encoding takes milliseconds."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from headroom.adapters.gateways.xds_server import messages
from headroom.gateway.built_routes import Resource


class EncodedResources:
    """The encoded resources that were sent, by kind and name."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str, bytes]] = {}

    def keep(self, resources: Mapping[str, Mapping[str, Resource]]) -> None:
        """Discard those that are not among these, by kind and name."""
        for kind, name in list(self._known):
            if name not in resources[kind]:
                del self._known[kind, name]

    def of(self, kind: str, name: str, resource: Resource) -> bytes:
        """Return the encoding of this version."""
        version, body = self._known.get((kind, name), ("", b""))
        if version != resource.version:
            body = messages.encode(orjson.loads(resource.body))
            self._known[kind, name] = resource.version, body
        return body
