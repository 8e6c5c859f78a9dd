"""Several operators on one API server: take-overs in time, and no write of a leader that was."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster import ControlPlane
from reliability.calls import Call
from reliability.ground import Ground, World, ground, world
from reliability.operator_process import OperatorProcess, kubeconfig_through
from reliability.proxy import FaultProxy

LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/headroom-operator"
STATUS = "inferenceservices/status"
BESIDES = ("leases", "selfsubjectaccessreviews")
"""Written by whoever follows, too; reviews change nothing."""
AFTER_SIGTERM_S = 5.0
AFTER_SIGKILL_S = 20.0
REPLICA_RPS = 9.0


class Holding:
    """Holds the next status write between the operator and the API server, when it is armed."""

    def __init__(self) -> None:
        self.armed = False
        self.caught = asyncio.Event()
        self.released = asyncio.Event()
        self.answered = asyncio.Event()
        self.code = 0
        """What the API server answered to the write that was held."""
        self._held: Call | None = None

    async def before(self, call: Call) -> None:
        if self.armed and call.resource == STATUS:
            self.armed, self._held = False, call
            self.caught.set()
            await self.released.wait()

    async def after(self, call: Call, code: int) -> None:
        if call is self._held:
            self.code = code
            self.answered.set()


@dataclass(frozen=True)
class Contender:
    """An operator process, and everything that it said to the API server."""

    process: OperatorProcess
    proxy: FaultProxy

    def wrote_after(self, at_s: float) -> list[str]:
        """Name what the API server took of it, but its Lease."""
        return [
            each.call.words
            for each in self.proxy.exchanges
            if each.taken and each.at_s > at_s and each.call.resource not in BESIDES
        ]

    def first_status_after(self, at_s: float) -> float | None:
        """When it first wrote a status since."""
        times = (
            each.at_s
            for each in self.proxy.exchanges
            if each.taken and each.call.resource == STATUS and each.at_s > at_s
        )
        return next(times, None)


@contextlib.asynccontextmanager
async def follower(of: World, name: str) -> AsyncIterator[Contender]:
    """Run another operator for the same Lease, with a proxy of its own."""
    on = of.ground
    async with FaultProxy(on.admin.server, on.admin.authority_pem) as proxy:
        kubeconfig = on.scratch / f"{of.namespace}-{name}.kubeconfig"
        process = OperatorProcess(
            kubeconfig_through(proxy.url, on.credentials, kubeconfig),
            on.scratch / f"{of.namespace}-{name}.log",
            namespaces=[of.namespace],
            instance=name,
            lease_namespace=of.namespace,
        )
        await process.start()
        try:
            yield Contender(process, proxy)
        finally:
            await process.kill()


async def holder(of: World) -> str:
    """Name the instance that holds the Lease; empty where nobody does."""
    lease = await of.admin.find(LEASE.format(of.namespace)) or {}
    return str(lease.get("spec", {}).get("holderIdentity") or "").partition("_")[0]


async def leads(of: World) -> Contender:
    """Let the first operator hold the Lease and look after a service."""
    await of.operator.start()
    await of.apply()
    await of.wait("a leader", lambda: holder(of))
    return Contender(of.operator, of.proxy)


async def stand_by(of: World, *followers: Contender) -> None:
    """Wait until the service serves, and every follower could take over at once."""
    for one in followers:
        await of.wait("a follower is ready", one.process.ready)
    await of.wait("one replica serves", lambda: of.serves(1))
    assert await holder(of) == "operator-0"
    assert [one.wrote_after(0.0) for one in followers] == [[] for _ in followers]


async def taken_over(of: World, by: Sequence[Contender], since_s: float) -> tuple[Contender, float]:
    """Wait for the first status of a new leader; give who it is, and its seconds."""

    async def has_written() -> bool:
        return any(one.first_status_after(since_s) is not None for one in by)

    await of.wait("a new leader's status", has_written, 40.0)
    written = [(one, one.first_status_after(since_s)) for one in by]
    ((new, at_s),) = [(one, at_s) for one, at_s in written if at_s is not None]
    return new, at_s - since_s


def never_fell(replicas: list[int]) -> bool:
    return replicas == sorted(replicas)


@pytest.mark.timeout(300, func_only=True)
async def test_leaders_are_replaced_in_time_and_write_no_more(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with ground(control_plane, tmp_path) as on, asyncio.TaskGroup() as side_by_side:
        side_by_side.create_task(a_leader_that_ends_or_is_killed_is_replaced_in_time(on))
        side_by_side.create_task(what_a_stopped_leader_had_on_its_way_is_refused(on))


async def a_leader_that_ends_or_is_killed_is_replaced_in_time(on: Ground) -> None:
    async with world(on, "killed", lease=True) as of:
        first = await leads(of)
        async with follower(of, "operator-1") as one, follower(of, "operator-2") as other:
            await stand_by(of, one, other)
            of.load(2 * REPLICA_RPS)
            await of.wait("more replicas", lambda: of.serves(3))
            begun_s = time.monotonic()
            await first.process.stop()
            second, after_sigterm_s = await taken_over(of, (one, other), begun_s)
            begun_s = time.monotonic()
            await second.process.kill()
            (third,) = {one, other} - {second}
            _, after_sigkill_s = await taken_over(of, [third], begun_s)
            await asyncio.sleep(2.0)
        print(f"taken over {after_sigterm_s:.1f} s after SIGTERM, {after_sigkill_s:.1f} s SIGKILL")
        assert after_sigterm_s < AFTER_SIGTERM_S
        assert after_sigkill_s < AFTER_SIGKILL_S
        assert never_fell(of.replicas_seen), "no replica goes because the leader did"


async def what_a_stopped_leader_had_on_its_way_is_refused(on: Ground) -> None:
    gate = Holding()
    async with world(on, "stopped", gate=gate, lease=True) as of:
        old = await leads(of)
        async with follower(of, "operator-1") as new:
            await stand_by(of, new)
            gate.armed = True
            of.load(2 * REPLICA_RPS)  # its status is written before the replicas that it explains
            await asyncio.wait_for(gate.caught.wait(), 60.0)
            os.kill(old.process.pid, signal.SIGSTOP)
            stopped_s = time.monotonic()
            await taken_over(of, [new], stopped_s)
            gate.released.set()
            await asyncio.wait_for(gate.answered.wait(), 30.0)
            assert gate.code == 409
            os.kill(old.process.pid, signal.SIGCONT)
            await asyncio.sleep(4.0)
            first_s = new.first_status_after(stopped_s)
            assert first_s is not None
            assert old.wrote_after(first_s) == []
            assert await holder(of) == "operator-1"
            assert not old.process.ended, "it follows now"
            await of.wait("more replicas", lambda: of.serves(3))
        assert never_fell(of.replicas_seen)
