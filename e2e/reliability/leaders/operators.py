"""Operators that compete for one Lease, each behind its own proxy, and the holder."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field

from reliability.fault_proxy.calls import REVIEWS, Call
from reliability.fault_proxy.proxy import FaultProxy
from reliability.testbed.operator_process import OperatorProcess, kubeconfig_through
from reliability.testbed.world import World

LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/headroom-operator"
LEASES = "leases"
STATUS = "inferenceservices/status"
BESIDES = REVIEWS | {LEASES}
"""Followers write these too; reviews change nothing."""


class Holding:
    """Holds the next write of a kind between the operator and the API server, when it is armed."""

    def __init__(self) -> None:
        self._resource = ""
        self._held: Call | None = None
        self._release()

    def arm(self, resource: str = STATUS) -> None:
        """Hold the next write of this resource."""
        self._resource, self._held = resource, None
        self._release()

    def _release(self) -> None:
        self.caught, self.released = asyncio.Event(), asyncio.Event()
        self.answered = asyncio.Event()
        self.code = 0
        """Answer of the API server to the write that was held."""

    async def before(self, call: Call) -> None:
        """Hold the call if it is the one that was armed."""
        if self._resource and call.writes and call.resource == self._resource:
            self._resource, self._held = "", call
            self.caught.set()
            await self.released.wait()

    async def after(self, call: Call, code: int) -> None:
        """Record the answer to the call that was held."""
        if call is self._held:
            self.code = code
            self.answered.set()


@dataclass(frozen=True)
class Candidate:
    """An operator process, and everything that it sent to the API server."""

    name: str
    process: OperatorProcess
    proxy: FaultProxy
    gate: Holding = field(default_factory=Holding)

    def wrote_after(self, at_s: float) -> list[str]:
        """Return its accepted writes after this time, without those of its Lease."""
        return [
            each.call.words
            for each in self.proxy.exchanges
            if each.taken and each.at_s > at_s and each.call.resource not in BESIDES
        ]

    def first_status_after(self, at_s: float) -> float | None:
        """Return when it first wrote a status after a moment."""
        times = (
            each.at_s
            for each in self.proxy.exchanges
            if each.taken and each.call.resource == STATUS and each.at_s > at_s
        )
        return next(times, None)


@contextlib.asynccontextmanager
async def candidate(of: World, name: str, tick: str = "500ms") -> AsyncIterator[Candidate]:
    """Run one more operator for the world's Lease."""
    on, gate = of.shared, Holding()
    async with FaultProxy(on.admin.server, on.admin.authority_pem, gate) as proxy:
        kubeconfig = on.scratch / f"{of.namespace}-{name}.kubeconfig"
        process = OperatorProcess(
            kubeconfig_through(proxy.url, on.credentials, kubeconfig),
            on.scratch / f"{of.namespace}-{name}.log",
            namespaces=[of.namespace],
            tick=tick,
            instance=name,
            lease_namespace=of.namespace,
        )
        await process.start()
        try:
            yield Candidate(name, process, proxy, gate)
        finally:
            await process.kill()


async def holder(of: World) -> str:
    """Return the instance that holds the Lease; empty if none does."""
    lease = await of.admin.find(LEASE.format(of.namespace)) or {}
    return str(lease.get("spec", {}).get("holderIdentity") or "").partition("_")[0]


async def taken_over(
    of: World, by: Collection[Candidate], since_s: float
) -> tuple[Candidate, float]:
    """Wait for the first status of a new leader; return the leader, and how long it took."""

    async def has_written() -> bool:
        return any(one.first_status_after(since_s) is not None for one in by)

    await of.wait("a new leader's status", has_written, 60.0)
    written = [(one, one.first_status_after(since_s)) for one in by]
    ((new, at_s),) = [(one, at_s) for one, at_s in written if at_s is not None]
    return new, at_s - since_s
