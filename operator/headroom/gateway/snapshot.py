"""Everything that the gateways are told at one moment, by kind and name, each with its version.

A version is a digest of the content: an operator that starts anew, or another one, tells the
gateways nothing that they know already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

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
ROUTES_KEPT = 4096
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
            "listeners": _answer("listeners", [_listener(route) for route in ordered]),
            "clusters": _answer("clusters", [one for r in ordered for one in _clusters(r)]),
        },
        named={
            ("endpoints", assignment["cluster_name"]): _answer("endpoints", [_text(assignment)])
            for route in ordered
            for assignment in endpoints.build(route, replicas.get(route.key, ()))
        }
        | {("runtime", runtime.LAYER): _answer("runtime", [_text(runtime.build(in_flight))])},
    )


@lru_cache(maxsize=ROUTES_KEPT)
def _listener(route: Route) -> bytes:
    """A route changes with its resource only; replicas change all the time."""
    return _text(listeners.build(route))


@lru_cache(maxsize=ROUTES_KEPT)
def _clusters(route: Route) -> tuple[bytes, ...]:
    return tuple(_text(cluster) for cluster in clusters.build(route))


def _answer(kind: str, resources: Sequence[bytes]) -> Answer:
    """Write a DiscoveryResponse around resources that are text already."""
    content = b",".join(resources)
    version = hashlib.sha256(content).hexdigest()[:16]
    head = _text({"version_info": version, "type_url": KINDS[kind]})
    return Answer(version=version, body=head[:-1] + b',"resources":[' + content + b"]}")


def _text(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
