"""Two operators on one cluster, on virtual time: who decides, who writes, and when that changes."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from cluster_world import FakeClock, FakeCluster, Manifest
from controller_world import REPLICA_RPS, FakeRecorder, spec
from headroom.controller.controller import Controller
from headroom.controller.leadership import Candidate, Election, LeasedCluster, Term
from headroom.errors import ClusterError, Conflict, Forbidden, NotLeading, Unavailable
from pods_world import Pods
from virtual_time import VirtualTimeLoop


class Connection:
    """One operator's way to the cluster; it can break, and it remembers what went through."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.writes: list[tuple[float, str, str]] = []
        self.broken: ClusterError | None = None
        self.hangs = False

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.hangs:
                await asyncio.Event().wait()
            if self.broken is not None:
                raise self.broken
            answer = await getattr(self._cluster, verb)(*args, **kwargs)
            if verb not in ("get", "list_all", "list_at") and not kwargs.get("dry_run"):
                kind = args[0]["kind"] if isinstance(args[0], dict) else ""
                self.writes.append((asyncio.get_running_loop().time(), verb, kind))
            return answer

        return call


class Observed:
    def __init__(self) -> None:
        self.led_last = False

    def led(self, leading: bool, transitions: int) -> None:
        self.led_last = leading


class Operator:
    """A process: a controller that stands for the lease."""

    def __init__(self, world: Duel, name: str) -> None:
        self.api = Connection(world.cluster)
        self.recorder = FakeRecorder()
        self.observed = Observed()
        self.controller = Controller(
            cluster=self.api,
            scraper=world.pods,
            clock=world.clock,
            recorder=self.recorder,
            instance=name,
            chance=random.Random(7),
        )
        self.election = Election(
            leases=self.api,
            clocks=world.clock,
            namespace="headroom-system",
            name="headroom-operator",
            candidate=Candidate(identity=name),
            observer=self.observed,
        )

    def begin(self) -> None:
        self._follow = asyncio.create_task(self.controller.follow())
        self._stand = asyncio.create_task(self.election.run(self.controller.lead))

    async def end(self) -> None:
        """As SIGTERM does."""
        for task in (self._follow, self._stand):
            task.cancel()
        await asyncio.gather(self._follow, self._stand, return_exceptions=True)

    async def die(self) -> None:
        """As SIGKILL does: nothing is said to anybody."""
        self.api.broken = Unavailable("no such process")
        await self.end()

    @property
    def decided(self) -> int:
        return len(self.recorder.decisions)


class Duel:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.pods = Pods(self.cluster, self.clock)
        self.cluster.before_call = lambda *_: self.pods.follow()
        self.cluster.on_change = self._changed
        self.one, self.other = Operator(self, "one"), Operator(self, "other")

    def _changed(self, kind: str, changed: Manifest) -> None:
        if changed["kind"] == "InferenceService":
            for operator in (self.one, self.other):
                operator.controller.observe(kind, copy.deepcopy(changed))

    async def begin(self, **changes: Any) -> None:
        """Let `one` lead a service, and `other` follow."""
        self.cluster.put(
            {
                "apiVersion": "headroom.dev/v1alpha1",
                "kind": "InferenceService",
                "metadata": {"name": "resnet", "namespace": "default"},
                "spec": spec(**changes),
            }
        )
        self.one.begin()
        await asyncio.sleep(0.5)
        self.other.begin()
        await asyncio.sleep(29.5)
        assert (self.one.election.leading, self.other.election.leading) == (True, False)

    def lease(self) -> Manifest:
        found = self.cluster.find("Lease", "headroom-operator", "headroom-system")
        assert found is not None
        stated: Manifest = found["spec"]
        return stated

    def replicas(self) -> int:
        deployment = self.cluster.find("Deployment", "resnet")
        assert deployment is not None
        return int(deployment["spec"]["replicas"])


def duel(story: Callable[[Duel], Awaitable[None]]) -> None:
    async def run() -> None:
        world = Duel()
        try:
            await story(world)
        finally:
            await world.one.end()
            await world.other.end()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_one_decides_and_the_other_knows_and_writes_nothing() -> None:
    async def story(world: Duel) -> None:
        await world.begin()
        assert world.one.decided >= 13
        assert world.other.decided == 0
        assert world.other.api.writes == []
        assert len(world.other.controller.cache) == 1
        assert world.lease()["holderIdentity"] == "one"
        assert (world.one.observed.led_last, world.other.observed.led_last) == (True, False)

    duel(story)


@pytest.mark.parametrize(
    ("ending", "within_s"), [("end", 2.5), ("die", 14.5)], ids=["SIGTERM", "SIGKILL"]
)
def test_the_other_takes_over_and_nothing_is_scaled_by_it(ending: str, within_s: float) -> None:
    async def story(world: Duel) -> None:
        await world.begin()
        world.pods.arrivals_rps["resnet"] = 3 * REPLICA_RPS
        await asyncio.sleep(60.0)
        replicas, writes = world.replicas(), list(world.cluster.scale_writes)
        assert replicas >= 3
        await getattr(world.one, ending)()
        await asyncio.sleep(within_s)
        assert world.other.decided >= 1
        assert world.lease()["leaseTransitions"] == 1
        assert world.one.recorder.gone[-1] == "default/resnet", "its figures go with it"
        await asyncio.sleep(60.0)
        assert world.replicas() == replicas
        assert world.cluster.scale_writes == writes

    duel(story)


def test_a_leader_that_hears_nothing_stops_before_another_begins() -> None:
    async def story(world: Duel) -> None:
        await world.begin()
        world.one.api.hangs = True
        decided, writes = world.one.decided, len(world.one.api.writes)
        await asyncio.sleep(9.0)
        assert not world.one.election.leading
        assert not world.other.election.leading, "nobody may take it for four seconds more"
        await asyncio.sleep(6.0)
        assert world.other.decided >= 1
        world.one.api.hangs = False
        await asyncio.sleep(30.0)
        assert world.one.election.holder == "other"
        assert world.one.decided <= decided + 1
        assert len(world.one.api.writes) == writes

    duel(story)


def test_an_outage_that_nobody_used_leaves_memory_alone() -> None:
    async def story(world: Duel) -> None:
        await world.begin()
        world.pods.arrivals_rps["resnet"] = 2 * REPLICA_RPS
        await asyncio.sleep(60.0)
        for operator in (world.one, world.other):
            operator.api.broken = Unavailable("503")
        await asyncio.sleep(40.0)
        assert not world.one.election.leading
        assert world.one.election.complaint == "503"
        world.other.api.broken = None
        world.one.api.broken = None
        transitions = world.lease()["leaseTransitions"]
        leader = world.one
        await asyncio.sleep(9.0)
        if not leader.election.leading:
            leader, transitions = world.other, transitions + 1
        assert world.lease()["leaseTransitions"] == transitions
        assert leader.decided >= 1
        assert leader.election.complaint == ""

    duel(story)


def test_the_same_leader_goes_on_with_what_it_remembers() -> None:
    async def story(world: Duel) -> None:
        await world.begin()
        await world.other.die()
        world.pods.arrivals_rps["resnet"] = 2 * REPLICA_RPS
        await asyncio.sleep(60.0)
        world.one.api.broken = Unavailable("503")
        await asyncio.sleep(11.0)
        assert not world.one.election.leading
        world.one.api.broken = None
        decided = world.one.decided
        await asyncio.sleep(9.0)
        assert world.one.decided > decided, "2 ticks and 5 s"
        signals = world.one.recorder.decisions[decided].signals
        assert signals.arrival_rps.value is not None, "a new process would know no rate yet"

    duel(story)


def test_a_lease_that_may_not_be_written_leads_nowhere_and_says_so() -> None:
    async def story(world: Duel) -> None:
        world.cluster.fail("create", "Lease", Forbidden("leases is forbidden"), times=1000)
        world.one.begin()
        await asyncio.sleep(60.0)
        assert world.one.decided == 0
        assert world.one.election.complaint == "leases is forbidden"
        tried = [call for call in world.cluster.calls if call == ("create", "Lease")]
        assert len(tried) <= 31, "not more often than it would look otherwise"
        world.other.begin()

    duel(story)


def test_work_that_fails_ends_the_candidacy_and_frees_the_lease() -> None:
    async def story(world: Duel) -> None:
        async def work(_: Term) -> None:
            await asyncio.sleep(5.0)
            raise ZeroDivisionError("a defect")

        with pytest.raises(ZeroDivisionError):
            await world.one.election.run(work)
        assert world.lease()["holderIdentity"] == ""
        world.one.begin()
        world.other.begin()

    duel(story)


class Held:
    def __init__(self, left_s: float) -> None:
        self.left_s = left_s

    def remaining_s(self) -> float:
        return self.left_s


def writes(cluster: LeasedCluster, one: Manifest) -> list[Callable[[], Awaitable[Any]]]:
    return [
        lambda: cluster.create(one, field_manager="m"),
        lambda: cluster.apply(one, field_manager="m"),
        lambda: cluster.apply_status(one, field_manager="m"),
        lambda: cluster.apply_scale(one, 3, field_manager="m"),
        lambda: cluster.json_patch(one, [], field_manager="m"),
    ]


@pytest.mark.parametrize("left_s", [0.0, 3.0], ids=["too old", "runs out while it is written"])
def test_nothing_is_written_without_the_lease_or_beyond_it(left_s: float) -> None:
    async def story(world: Duel) -> None:
        await world.begin()
        connection = Connection(world.cluster)
        guarded = LeasedCluster(connection, Held(left_s))
        assert await guarded.list_all("v1", "Pod", None)
        deployment = await guarded.get("apps/v1", "Deployment", "default", "resnet")
        connection.hangs = True
        for write in writes(guarded, deployment):
            begun_s = asyncio.get_running_loop().time()
            with pytest.raises(NotLeading):
                await write()
            assert asyncio.get_running_loop().time() - begun_s == pytest.approx(left_s, abs=0.01)
        assert connection.writes == []

    duel(story)


def test_what_an_ex_leader_had_read_is_refused_after_the_first_write_of_the_next() -> None:
    """Whatever slept between the look at the lease and the sending."""

    async def story(world: Duel) -> None:
        await world.begin()
        stale = {kind: copy.deepcopy(world.cluster.find(kind, "resnet")) for kind in CHILDREN}
        await world.one.die()
        await asyncio.sleep(20.0)
        assert world.other.decided >= 1
        status = stale["InferenceService"]
        assert status is not None
        with pytest.raises(Conflict):
            await world.cluster.apply_status(status, field_manager="headroom")

    duel(story)


CHILDREN = ("InferenceService", "Deployment")
