"""The operator among hostile pods, in a cgroup of the chart's size, on a real API server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml

from bench.figures import Figure, at_least, at_most, shown
from bench.processes import Process
from reliability.attacks.hostile_services import Addresses, hostile, victim
from reliability.attacks.processes import running
from reliability.scale_1000 import accounts
from reliability.testbed.fake_kubelet import PODS, SERVICE_LABEL, FakeKubelet
from reliability.testbed.memory_cgroup import MIB, MemoryCgroup, bytes_of, memory_cgroup
from reliability.testbed.operator_process import OperatorProcess
from reliability.testbed.testbed import SYSTEM, SharedCluster
from reliability.testbed.world import SERVICES

CHART = Path(__file__).parents[3] / "charts" / "headroom" / "values.yaml"
ATTACK_S, QUICK_S = 600.0, 30.0
NAMESPACES, SERVICES_EACH = 4, 5
PODS_EACH, QUICK_PODS_EACH = 25, 5
TICK_S, LATE_S = 2.0, 1.0
LOOK_EVERY_S = 0.25
READY_WITHIN_S = 300.0
BOUND_BY_HAND = {"headroom.dev/pod-template": "unrestricted"}
"""Pods name their node, so that no scheduler is waited for; the admission policy refuses that."""
Say = Callable[[str], None]


def limit_bytes() -> int:
    """Return the operator's memory limit in the chart."""
    values = yaml.safe_load(CHART.read_text())
    return bytes_of(values["resources"]["limits"]["memory"])


@dataclass(slots=True)
class Outcome:
    """The outcome for the operator."""

    late_s: list[float] = field(default_factory=list)
    """Delay of each decision of the victims."""
    unanswered: int = 0
    """Looks at its metrics that failed."""
    kills: int = 0
    peak_bytes: int = 0
    operator_cores: float = 0.0
    attackers_cores: float = 0.0
    """CPU of the process that is all hostile pods."""

    def late_at(self, share: float) -> float:
        """Return what this share of the decisions was late by at most."""
        ordered = sorted(self.late_s) or [float("inf")]
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def survive(on: SharedCluster, seconds: float, pods_each: int) -> Outcome:
    """Watch the victims' decisions for so long, once all hostile pods run."""
    mark = secrets.token_hex(2)
    victims = f"victims-{mark}"
    namespaces = [f"hostile-{number}-{mark}" for number in range(NAMESPACES)]
    with memory_cgroup(limit_bytes()) as cgroup:
        async with _pods() as (port, pods), _running(on, cgroup, victims) as (operator, kubelet):
            for one in (victims, *namespaces):
                metadata = {"name": one, "labels": BOUND_BY_HAND}
                await on.admin.create("/api/v1/namespaces", {"metadata": metadata})
            await _accounts(on, (victims, *namespaces))
            for number in range(2):
                body = victim(f"v{number}", victims, port)
                await on.admin.create(SERVICES.format(victims), body)
            for number, namespace in itertools.product(range(SERVICES_EACH), namespaces):
                body = hostile(f"h{number}", namespace, port, pods_each, warmed=number % 2 == 0)
                await on.admin.create(SERVICES.format(namespace), body)
            await _until_ready(kubelet, operator, NAMESPACES * SERVICES_EACH * pods_each)
            found = await _watched(operator, pods, cgroup, victims, seconds)
        for one in (victims, *namespaces):
            await on.admin.delete(f"/api/v1/namespaces/{one}")
    return found


async def _watched(
    operator: OperatorProcess, pods: Process, cgroup: MemoryCgroup, victims: str, seconds: float
) -> Outcome:
    found, last = Outcome(), dict[str, float]()
    watched, begun_s = (Process(operator.pid), pods), time.monotonic()
    before_s = [one.cpu_s for one in watched]
    until_s = time.monotonic() + seconds
    timeout = aiohttp.ClientTimeout(total=10.0)
    url = f"http://127.0.0.1:{operator.port}/metrics"
    async with aiohttp.ClientSession(timeout=timeout) as http:
        while time.monotonic() < until_s and not operator.ended:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                async with http.get(url) as answer:
                    decided = accounts.decided_s(await answer.text())
            except (aiohttp.ClientError, TimeoutError):
                found.unanswered += 1
                continue
            for labels, moment_s in decided.items():
                if victims in labels and last.get(labels) != moment_s:
                    if labels in last:
                        found.late_s.append(max(0.0, moment_s - last[labels] - TICK_S))
                    last[labels] = moment_s
    found.kills = max(cgroup.kills, int(operator.ended))
    if not operator.ended:
        found.peak_bytes = cgroup.peak_bytes(operator.pid)
        took_s = time.monotonic() - begun_s
        found.operator_cores, found.attackers_cores = (
            (one.cpu_s - spent_s) / took_s for one, spent_s in zip(watched, before_s, strict=True)
        )
    return found


@contextlib.asynccontextmanager
async def _running(
    on: SharedCluster, cgroup: MemoryCgroup, victims: str
) -> AsyncIterator[tuple[OperatorProcess, FakeKubelet]]:
    log = on.scratch / f"{victims}.log"
    operator = OperatorProcess(
        on.credentials, log, tick=f"{TICK_S:g}s", lease_namespace=SYSTEM, prefix=cgroup.prefix
    )
    pods = f"{PODS}?labelSelector={SERVICE_LABEL}"
    kubelet = FakeKubelet(on.admin, Addresses(victims), pods, start_s=0.0, drain_s=0.0, at_once=16)
    task = asyncio.create_task(kubelet.run())
    await operator.start()
    try:
        yield operator, kubelet
    finally:
        await operator.stop()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _pods() -> AsyncIterator[tuple[int, Process]]:
    async with running("reliability.attacks.hostile_pods", read=True) as process:
        assert process.stdout is not None
        yield int(await process.stdout.readline()), Process(process.pid)


async def _accounts(on: SharedCluster, namespaces: Sequence[str]) -> None:
    """Wait until pods may be made."""
    for one in namespaces:
        while await on.admin.find(f"/api/v1/namespaces/{one}/serviceaccounts/default") is None:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def _until_ready(kubelet: FakeKubelet, operator: OperatorProcess, pods: int) -> None:
    until_s = time.monotonic() + READY_WITHIN_S
    while kubelet.ready < pods and not operator.ended and time.monotonic() < until_s:  # noqa: ASYNC110
        await asyncio.sleep(0.5)


async def measure(on: SharedCluster, seconds: float, pods_each: int, say: Say) -> Sequence[Figure]:
    """Attack, and compare."""
    found = await survive(on, seconds, pods_each)
    if found.kills:
        say("operator: it was killed")
    return (
        shown("hostile pods", f"{NAMESPACES * SERVICES_EACH * pods_each}"),
        shown("seconds", f"{seconds:g}"),
        at_most("kills for memory", found.kills, 0, "", 0),
        shown("most memory", f"{found.peak_bytes / MIB:.0f} of {limit_bytes() / MIB:.0f} MiB"),
        at_least("decisions of others", len(found.late_s), seconds / TICK_S / 4, "", 0),
        at_most("decisions of others late by, p99", found.late_at(0.99), LATE_S, " s", 2),
        shown("the same, most", f"{found.late_at(1.0):.2f} s"),
        shown("looks at its metrics without an answer", f"{found.unanswered}"),
        shown("CPU of the operator", f"{found.operator_cores:.2f} cores"),
        shown("CPU of the attackers", f"{found.attackers_cores:.2f} cores"),
    )
