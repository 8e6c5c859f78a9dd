"""Finds writes of an earlier leader after the next leader has written to the same object.

The API server's resource versions are the order in which it took the writes, whatever clocks say.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reliability.fault_proxy.exchanges import Exchange

LEASES = "leases"
UNFENCED = frozenset({LEASES, "events"})
"""The Lease itself, and what is only ever created under a name of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that was taken."""

    target: str
    """Kind, namespace and name; a subresource writes to its object."""
    version: int
    term: int
    """Number of changes of the Lease's holder when its writer began to lead."""
    words: str


def writes_of(exchanges: Sequence[Exchange], identity: str) -> list[Write]:
    """Return the writes of one instance, each with the lease term in which it was sent."""
    begun_s: list[float] = []
    numbers: list[int] = []
    found = []
    for each in sorted(exchanges, key=lambda one: one.at_s):
        if not each.taken:
            continue
        if each.call.resource == LEASES:
            spec = json.loads(each.sent)["spec"]
            if str(spec.get("holderIdentity") or "").startswith(identity):
                begun_s.append(each.at_s)
                numbers.append(int(spec["leaseTransitions"]))
        elif each.call.resource not in UNFENCED:
            place = bisect.bisect(begun_s, each.at_s) - 1
            kind = each.call.resource.partition("/")[0]
            found.append(
                Write(
                    target=f"{kind} {each.call.namespace}/{each.name}",
                    version=each.version,
                    term=numbers[place] if place >= 0 else -1,
                    words=f"{identity}: {each.call.words}",
                )
            )
    return found


def too_late(writes: Iterable[Write]) -> list[str]:
    """Return each write of a lease term to an object that a later term had written to before.

    A write that changes nothing is answered with the version that stands, so of several with one
    version only the first has written.
    """
    wrongs, latest = [], dict[str, Write]()
    for write in sorted(writes, key=lambda one: (one.version, one.term)):
        before = latest.get(write.target)
        if before is not None and write.term < before.term:
            wrongs.append(
                f"{write.target}: {write.words} of term {write.term} "
                f"after {before.words} of term {before.term}"
            )
        else:
            latest[write.target] = write
    return wrongs


def fallen(replicas: Mapping[str, Sequence[int]]) -> list[str]:
    """Name each Deployment whose replicas ever fell."""
    return [f"{name}: {seen}" for name, seen in replicas.items() if list(seen) != sorted(seen)]
