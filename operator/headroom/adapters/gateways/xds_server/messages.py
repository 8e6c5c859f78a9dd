"""Envoy's wire format: decodes discovery requests, encodes resources from JSON.

The message descriptors are those of the pinned Envoy (`envoy_api.binpb.z`, a compressed
FileDescriptorSet; a test compares it with the program), in a separate descriptor pool.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from headroom.adapters.gateways.xds_server.stream_state import DiscoveryRequest
from headroom.gateway.snapshot import KINDS

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
DESCRIPTIONS = "envoy_api.binpb.z"

_KIND_OF = {type_url: kind for kind, type_url in KINDS.items()}


def _pool() -> DescriptorPool:
    packed = files("headroom.adapters.gateways.xds_server").joinpath(DESCRIPTIONS).read_bytes()
    pool = DescriptorPool()
    for one in FileDescriptorSet.FromString(zlib.decompress(packed)).file:
        pool.Add(one)
    return pool


_POOL = _pool()


def _message(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(name))


_Any = _message("google.protobuf.Any")
_Request = _message("envoy.service.discovery.v3.DeltaDiscoveryRequest")
_Response = _message("envoy.service.discovery.v3.DeltaDiscoveryResponse")


def read(data: bytes) -> tuple[str, DiscoveryRequest | None]:
    """Decode a request to (node id, request); None for an unknown kind. Raises ValueError."""
    try:
        asked = _Request.FromString(data)
    except Exception as error:  # DecodeError is no ValueError
        raise ValueError(f"not a DeltaDiscoveryRequest: {error}") from error
    kind = _KIND_OF.get(asked.type_url)
    if kind is None:
        return asked.node.id, None
    return asked.node.id, DiscoveryRequest(
        kind=kind,
        subscribed=tuple(asked.resource_names_subscribe),
        unsubscribed=tuple(asked.resource_names_unsubscribe),
        has=dict(asked.initial_resource_versions),
        refused=asked.error_detail.message if asked.HasField("error_detail") else "",
    )


def encode(resource: Mapping[str, Any]) -> bytes:
    """Encode a resource as an Any message. Raises ValueError with the name of a wrong field."""
    try:
        packed = json_format.ParseDict(dict(resource), _Any(), descriptor_pool=_POOL)
    except json_format.ParseError as error:
        raise ValueError(f"not a valid Envoy resource: {error}") from error
    return bytes(packed.SerializeToString(deterministic=True))


def answer(
    kind: str, changed: Iterable[tuple[str, str, bytes]], removed: Iterable[str], nonce: str
) -> bytes:
    """Encode a response: (name, version, encoded resource) of each change, and removed names."""
    response = _Response(type_url=KINDS[kind], nonce=nonce, removed_resources=list(removed))
    for name, version, body in changed:
        response.resources.add(name=name, version=version).resource.MergeFromString(body)
    return bytes(response.SerializeToString())
