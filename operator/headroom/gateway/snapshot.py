"""Everything that the gateways are told at one moment, by kind and name, each with its version.

A version is a digest of the content: an operator that starts anew, or another one, tells the
gateways nothing that they know already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headroom.gateway import clusters, endpoints, listeners, runtime
from headroom.gateway.type_urls import CLUSTER, ENDPOINTS, LISTENER, RUNTIME, Json
from headroom.gateway.values import Endpoint, Route

KINDS = {
    "listeners": LISTENER,
    "clusters": CLUSTER,
    "endpoints": ENDPOINTS,
    "runtime": RUNTIME,
}
"""The last word of a path of Envoy's REST API, and the type that is asked for there."""
_BY_NAME = ("endpoints", "runtime")
"""Asked for by name; of the other kinds everything is told."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is told of one kind."""

    version: str
    body: bytes
    """A DiscoveryResponse in JSON."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the gateways are told."""

    everything: Mapping[str, Answer] = field(default_factory=dict)
    named: Mapping[tuple[str, str], Answer] = field(default_factory=dict)

    def answer(self, kind: str, names: Sequence[str]) -> Answer | None:
        """Give what is told of a kind; None where nothing is told of these names (yet)."""
        if kind not in _BY_NAME:
            return self.everything.get(kind)
        found = [self.named[kind, name] for name in names if (kind, name) in self.named]
        # Envoy asks for one name at a time over REST.
        return found[0] if len(found) == 1 else None


def snapshot(
    routes: Iterable[Route],
    replicas: Mapping[str, Iterable[Endpoint]],
    in_flight: Mapping[str, int],
) -> Snapshot:
    """Build what is told from routes, and from warm replicas and bounds by a route's key."""
    ordered = sorted(routes, key=lambda route: route.key)
    return Snapshot(
        everything={
            "listeners": answer_of("listeners", [listeners.build(route) for route in ordered]),
            "clusters": answer_of(
                "clusters", [one for route in ordered for one in clusters.build(route)]
            ),
        },
        named={
            ("endpoints", assignment["cluster_name"]): answer_of("endpoints", [assignment])
            for route in ordered
            for assignment in endpoints.build(route, replicas.get(route.key, ()))
        }
        | {("runtime", runtime.LAYER): answer_of("runtime", [runtime.build(in_flight)])},
    )


def answer_of(kind: str, resources: Sequence[Json]) -> Answer:
    """Write a DiscoveryResponse."""
    version = hashlib.sha256(_text(resources)).hexdigest()[:16]
    body = {"version_info": version, "type_url": KINDS[kind], "resources": resources}
    return Answer(version=version, body=_text(body))


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
