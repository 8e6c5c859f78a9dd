"""Writes an object again after a conflict, where only its status or metadata changed meanwhile.

A workload whose pods start or flap gets a new status many times a minute, and a tick that waits for
silent pods takes longer than that: a decision would be made again and again and never be written.
Only another spec, or another owner, needs a new decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from headroom.controller.ports import Cluster, Manifest
from headroom.errors import Conflict

Written = TypeVar("Written")

AGAIN_TIMES = 3
"""Between a read and its write are some milliseconds: what changes more often is left for later."""


async def write_again(
    cluster: Cluster,
    named: Manifest,
    read: Manifest,
    write: Callable[[Manifest], Awaitable[Written]],
) -> Written:
    """Write to the object as it was read, and after a conflict as it is then, if its spec is.

    `named` has its apiVersion, kind, namespace and name. Raises ClusterError: Conflict where its
    spec, owner or UID is another.
    """
    for _ in range(AGAIN_TIMES):
        try:
            return await write(read)
        except Conflict:
            read = await _same(cluster, named, read)
    return await write(read)


async def _same(cluster: Cluster, named: Manifest, read: Manifest) -> Manifest:
    """Read the object again; raise Conflict unless the decision still applies to it."""
    kind, metadata = named["kind"], named["metadata"]
    now = await cluster.get(named["apiVersion"], kind, metadata["namespace"], metadata["name"])
    if _decided_on(now) != _decided_on(read):
        raise Conflict(f"{kind} {metadata['namespace']}/{metadata['name']} has changed")
    return now


def _decided_on(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the spec, which replicas and pods follow from, and whose the object is.

    The generation would not do: an annotation gives a Deployment a new one.
    """
    metadata = one["metadata"]
    owned = (metadata.get(key) for key in ("uid", "ownerReferences", "deletionTimestamp"))
    return (one.get("spec"), *owned)
