"""Environment of a measurement at scale: the operator, a kubelet, pages of pods, and a bar."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp

from cluster.commands import environment
from reliability.scale_1000.addresses import ServiceAddresses
from reliability.scale_1000.status_writes import StatusWrites
from reliability.testbed.fake_kubelet import PODS, SERVICE_LABEL, FakeKubelet
from reliability.testbed.operator_process import OperatorProcess
from reliability.testbed.testbed import SYSTEM, SharedCluster
from reliability.testbed.world import NotReached

LOOK_EVERY_S = 2.0
"""Pause between two reads of the operator's metrics, which have the times of decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The sizes to measure."""

    services: tuple[int, ...] = (10, 100, 1000)
    pods: int = 3
    unrelated: int = 7000
    watch_s: float = 60.0

    def key(self, services: int) -> str:
        """Name what is measured with this many, however many were there before."""
        return f"{services} of {self.pods}, {self.unrelated} of others, {self.watch_s:g} s"


Bar = Callable[[str, int], Callable[[int], object]]
"""Begins a bar with a title and a total; what it returns says how far it has come."""


@dataclass(slots=True)
class Stage:
    """One operator and what plays its cluster; `made` counts the services so far."""

    on: SharedCluster
    wanted: Wanted
    bar: Bar
    port: int
    operator: OperatorProcess
    kubelet: FakeKubelet
    writes: StatusWrites
    made: int = 0


async def until(
    stage: Stage, title: str, wanted: int, counted: Callable[[str], int], within_s: float
) -> None:
    """Look at the operator's metrics until they count as many; raise NotReached."""
    advance, begun_s, seen = stage.bar(title, wanted), time.monotonic(), 0
    while seen < wanted:
        await asyncio.sleep(LOOK_EVERY_S)
        if time.monotonic() - begun_s > within_s:
            said = stage.operator.said()[-2000:]
            pods = f"{stage.kubelet.ready} pods made ready"
            raise NotReached(f"{title}: {seen} of {wanted} in {within_s:.0f} s, {pods}: {said}")
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):  # it does not listen yet
            seen = counted(await metrics(stage.operator))
            advance(seen)


@contextlib.asynccontextmanager
async def staged(on: SharedCluster, wanted: Wanted, bar: Bar, port: int) -> AsyncIterator[Stage]:
    """Start the kubelet and the count of writes; the operator is killed at the end."""
    operator = OperatorProcess(
        on.credentials,
        on.scratch / "scale_1000.log",
        tick="2s",
        lease_namespace=SYSTEM,
    )
    kubelet = FakeKubelet(
        *(on.admin, ServiceAddresses(), f"{PODS}?labelSelector={SERVICE_LABEL}"),
        start_s=0.0,
        drain_s=0.0,
        at_once=16,
    )
    stage = Stage(on, wanted, bar, port, operator, kubelet, StatusWrites(on.admin))
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in (stage.kubelet, stage.writes)]
            yield stage
            for task in tasks:
                task.cancel()
    finally:
        await operator.kill()


@contextlib.asynccontextmanager
async def pod_pages() -> AsyncIterator[int]:
    """Start what answers for the pods; it ends with the block, and with this process."""
    process = await asyncio.create_subprocess_exec(
        *(
            "setpriv",
            "--pdeathsig",
            "KILL",
            sys.executable,
            "-m",
            "reliability.scale_1000.fake_pods",
        ),
        stdout=asyncio.subprocess.PIPE,
        env=environment({}),
    )
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        with contextlib.suppress(ProcessLookupError):  # it ended with the interrupted process
            process.kill()
        await process.wait()


async def metrics(operator: OperatorProcess) -> str:
    """Return the page of its own metrics."""
    url = f"http://127.0.0.1:{operator.port}/metrics"
    timeout = aiohttp.ClientTimeout(total=30.0)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        return await answer.text()
