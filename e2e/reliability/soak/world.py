"""Two operators on one API server in memory, on virtual time, under faults.

The fakes are those of the tests; `operator_process` is made of the production's parts.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import random
from collections import Counter
from collections.abc import Callable

from bench.processes import Process
from headroom.api.timestamps import epoch_s
from headroom.errors import ClusterError, Conflict, Unavailable
from reliability.soak import chaos
from reliability.soak.chaos import Episode, Trouble
from reliability.soak.operator_process import MAX_REPLICAS, Operator
from reliability.soak.soak_results import Count, SoakResults
from support.cluster_world import FakeClock, FakeCluster, Manifest
from support.controller_world import spec
from support.pods_world import Pods

EVENTS_LAST_S = 3600.0
"""Time for which the API server keeps events."""
FOLLOW_EVERY_S = 0.5
BACK_AFTER_S = 5.0
"""The kubelet restarts a killed process after this time."""
_READS = ("get", "get_scale", "list_all", "list_at")
_HANG_S = 10.0


class World:
    """All actors of the soak; `live` runs them."""

    def __init__(self, seed: int, hours: float, services: int, count_every_s: float) -> None:
        self.results = SoakResults(seed=seed, hours=hours, services=services)
        self._seconds, self._count_every_s = hours * 3600.0, count_every_s
        self._chance = random.Random(seed + 1)
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.pods = Pods(self.cluster, self.clock)
        self.cluster.before_call = lambda *_: self._follow()
        self.cluster.on_change = self._changed
        self.outcomes: Counter[str] = Counter()
        self.decided_s: dict[str, float] = {}
        self._going_on: set[Trouble] = set()
        self._followed_s = -1.0
        self._names: list[str] = []
        self._number = 0
        self._operators: list[Operator] = []

    async def live(self, counted: Callable[[Count], object]) -> SoakResults:
        """Run the whole soak; report each count."""
        for _ in range(self.results.services):
            self._create()
        self._operators = [Operator(self, f"operator-{one}") for one in range(2)]
        async with asyncio.TaskGroup() as group:
            parts = [self._kill(), self._trouble(), self._load(), self._count(counted)]
            others = [group.create_task(part) for part in parts]
            await asyncio.sleep(self._seconds)
            self._judge()
            for task in others:
                task.cancel()
        for one in self._operators:
            await one.die()
        return self.results

    async def meet(self, verb: str, *, cut: bool) -> None:
        """Apply the current faults to a request; raise ClusterError where it fails."""
        if cut:
            raise Unavailable("no such process")
        on = self._going_on
        if Trouble.HANGS in on:
            await asyncio.sleep(_HANG_S)
            raise Unavailable("no answer in 10 s")
        if Trouble.THROTTLED in on:
            raise Unavailable("too many requests (429)", retry_after_s=self._chance.uniform(1, 10))
        if Trouble.UNAVAILABLE in on or self._chance.random() < chaos.REFUSED_SHARE:
            raise Unavailable("the server is overloaded (503)")
        if Trouble.CONFLICTS in on and verb not in _READS:
            raise Conflict("the object has been modified (409)")

    async def _kill(self) -> None:
        number = 2
        while True:
            await asyncio.sleep(chaos.KILL_EVERY_S)
            if not chaos.is_deadly(_now_s(), self._seconds):
                continue
            for place, one in enumerate(self._operators):
                if one.leads:
                    await one.die()
                    self.results.kills += 1
                    await asyncio.sleep(BACK_AFTER_S)
                    self._operators[place] = Operator(self, f"operator-{number}")
                    number += 1
                    break

    async def _trouble(self) -> None:
        for one in chaos.episodes(self.results.seed, self._seconds, self.results.services):
            await asyncio.sleep(max(0.0, one.at_s - _now_s()))
            self.results.troubles += 1
            self._begin(one)
            await asyncio.sleep(one.lasts_s)
            self._going_on.discard(one.trouble)
            self.pods.silent = False

    def _begin(self, one: Episode) -> None:
        match one.trouble:
            case Trouble.SERVICE_GOES:
                self.cluster.delete("InferenceService", self._names.pop(one.service))
                self._create()
            case Trouble.EDITED:
                name = self._names[one.service]
                service = self.cluster.find("InferenceService", name)
                assert service is not None
                wanted = _spec(target=f"{self._chance.choice((1200, 1500, 1800))}ms")
                self.cluster.update(service, lambda it: it.update(spec=wanted))
            case Trouble.SILENT:
                self.pods.silent = True
            case _:
                self._going_on.add(one.trouble)

    async def _load(self) -> None:
        while True:
            for place, name in enumerate(self._names):
                rps = chaos.load_rps(self.results.seed, place, _now_s())
                self.pods.arrivals_rps[name] = rps
            self._sweep()
            await asyncio.sleep(60.0)

    async def _count(self, counted: Callable[[Count], object]) -> None:
        while True:
            await asyncio.sleep(self._count_every_s)
            gc.collect()
            count = Count(
                hour=_now_s() / 3600.0,
                rss_mb=Process(os.getpid()).rss_mb,
                objects=len(gc.get_objects()),
                tasks=len(asyncio.all_tasks()),
            )
            self.results.counts.append(count)
            counted(count)

    def _judge(self) -> None:
        """Check the end, which has no faults: every service was decided, nothing was unforeseen."""
        for name in self._names:
            late_s = _now_s() - self.decided_s.get(name, 0.0)
            if late_s > 10.0:
                self.results.wrongs.append(f"{name} was last decided {late_s:.0f} s ago")
        foreseen = {"ok", "TimeoutError", *(one.__name__ for one in _descendants(ClusterError))}
        for outcome in set(self.outcomes) - foreseen:
            self.results.wrongs.append(f"{self.outcomes[outcome]} ticks ended with {outcome}")

    def _create(self) -> None:
        name = f"s{self._number}"
        self._number += 1
        self._names.append(name)
        self.cluster.put(
            {
                "apiVersion": "headroom.dev/v1alpha1",
                "kind": "InferenceService",
                "metadata": {"name": name, "namespace": "default"},
                "spec": _spec(),
                "status": {},
            }
        )

    def _sweep(self) -> None:
        """Drop what a real API server drops, and what the fakes keep for tests."""
        cluster, now_s = self.cluster, self.clock.now_s()
        cluster.calls.clear()
        cluster.scale_writes.clear()
        old = [
            key
            for key, one in cluster.objects.items()
            if key[0] == "Event"
            and now_s - epoch_s(one["metadata"]["creationTimestamp"]) > EVENTS_LAST_S
        ]
        for key in old:
            del cluster.objects[key]
        self.pods.forget_the_gone()
        self.decided_s = {name: self.decided_s.get(name, 0.0) for name in self._names}

    def _follow(self) -> None:
        if _now_s() - self._followed_s >= FOLLOW_EVERY_S:
            self._followed_s = _now_s()
            self.pods.follow()

    def _changed(self, kind: str, changed: Manifest) -> None:
        if changed["kind"] == "InferenceService" and Trouble.DEAF not in self._going_on:
            for one in self._operators:
                if not one.api.cut:
                    one.controller.observe(kind, copy.deepcopy(changed))


def _spec(target: str = "1500ms") -> Manifest:
    wanted = spec(scaling={"maxReplicas": MAX_REPLICAS})
    wanted["slo"] = {"latency": {"target": target}}
    return wanted


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _descendants(kind: type[ClusterError]) -> set[type[ClusterError]]:
    below = {one for direct in kind.__subclasses__() for one in _descendants(direct)}
    return {kind, *below}
