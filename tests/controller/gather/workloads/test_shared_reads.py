"""Many services: one LIST for several ticks, and never a reason to scale."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from headroom.api import InferenceService
from headroom.controller.gather.workloads.crowded_names import CROWDED_FOR_S
from headroom.controller.gather.workloads.listed_parts import MOST_PODS, MOST_STRANGE
from headroom.controller.gather.workloads.shared_reads import MOST, SharedReads, Sharing
from headroom.controller.scheduling import tick_period
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import AnswerTooLarge, Unavailable
from headroom.resources.names import SERVICE_LABEL
from support.cluster_world import FakeClock, FakeCluster, Manifest
from support.controller_world import REPLICA_RPS, World, play
from support.service_world import service
from support.virtual_time import VirtualTimeLoop

REAL, OTHERS = 4, 20
"""Services that run, and such that wait for their target, so that there are many."""


@pytest.mark.parametrize(
    ("services", "period_s", "shared_s"),
    [(1, 2.0, 0.0), (19, 2.0, 0.0), (20, 2.0, 0.5), (100, 2.0, 0.5), (1000, 15.0, 3.75)],
)
def test_read_ahead_grows_with_the_services(
    services: int, period_s: float, shared_s: float
) -> None:
    assert tick_period.read_ahead_s(services, period_s) == shared_s


class Stage:
    """Services a and b with pods a1 and b1; a request takes 2 ms of virtual time."""

    def __init__(self, *, clusterwide: bool = False) -> None:
        self.cluster = FakeCluster(FakeClock())
        self.cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
        self.due_s: dict[str, float] = {}
        self.shared = SharedReads(self.cluster, self.cache, self._upcoming, clusterwide=clusterwide)
        for name in "ab":
            self.serve(name)
            self.add(name, f"{name}1")

    def serve(self, name: str, namespace: str = "default", **spec: Any) -> None:
        metadata = {"name": name, "namespace": namespace, "labels": {SERVICE_LABEL: name}}
        self.cache.saw({"metadata": metadata | {"uid": f"{namespace}/{name}"}, "spec": spec})
        self.due_s[f"{namespace}/{name}"] = 0.0
        self._put("apps/v1", "Deployment", metadata)

    def add(self, of: str, name: str, namespace: str = "default") -> None:
        labels = {SERVICE_LABEL: of}
        self._put("v1", "Pod", {"name": name, "namespace": namespace, "labels": labels})

    def disguise(self, kind: str, of: str, number: int) -> None:
        """Put the label on this number of foreign objects."""
        for key in [key for key in self.cluster.objects if key[1] == "stranger"]:
            del self.cluster.objects[key]
        for at in range(number):
            metadata = {"name": f"x{at}", "namespace": "stranger", "labels": {SERVICE_LABEL: of}}
            self._put("v1" if kind == "Pod" else "apps/v1", kind, metadata)

    def _put(self, api_version: str, kind: str, metadata: Manifest) -> None:
        one = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        self.cluster.put(one | {"spec": {"replicas": 1}})

    async def see(
        self, name: str, ahead_s: float = 1.0, namespace: str = "default"
    ) -> tuple[list[str], bool]:
        sharing = Sharing(ahead_s=ahead_s, period_s=4.0)
        seen = await self.shared.of(_service(name, namespace), sharing)
        self.due_s[f"{namespace}/{name}"] = asyncio.get_running_loop().time() + sharing.period_s
        assert seen.workload is None or seen.workload.manifest["kind"] == "Deployment"
        return [pod["metadata"]["name"] for pod in seen.pods], seen.own

    def _upcoming(self, seconds: float) -> list[tuple[float, str]]:
        horizon_s = asyncio.get_running_loop().time() + seconds
        return [(due_s, uid) for uid, due_s in self.due_s.items() if due_s <= horizon_s]

    def asked(self, kind: str = "Pod") -> int:
        return self.cluster.calls.count(("list_all", kind))


def _service(name: str, namespace: str) -> InferenceService:
    uid = f"{namespace}/{name}"
    return service(metadata={"name": name, "namespace": namespace, "uid": uid})


def on_stage(scenario: Callable[[Stage], Awaitable[None]], **given: bool) -> None:
    async def run() -> None:
        await scenario(Stage(**given))

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_service_due_soon_shares_a_read_once() -> None:
    async def scenario(stage: Stage) -> None:
        assert await stage.see("a") == (["a1"], True)
        stage.add("b", "b2")
        await asyncio.sleep(0.9)
        assert await stage.see("b") == (["b1"], False)
        assert stage.asked() == stage.asked("Deployment") == 1
        assert await stage.see("b") == (["b1", "b2"], True)
        assert stage.asked() == 2

    on_stage(scenario)


def test_shared_read_too_old_is_discarded() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.see("b")
        await asyncio.sleep(2.9)
        assert await stage.see("a") == (["a1"], False)  # it was not read before
        await asyncio.sleep(0.05)
        assert await stage.see("a") == (["a1"], True)  # and b is not due yet
        await asyncio.sleep(1.0)
        assert await stage.see("b") == (["b1"], True)
        await asyncio.sleep(3.1)
        assert await stage.see("a") == (["a1"], True)
        stage.add("b", "b2")
        await asyncio.sleep(3.9)
        assert await stage.see("b") == (["b1"], False)  # late, and good enough
        await asyncio.sleep(3.1)
        assert await stage.see("a") == (["a1"], True)
        await asyncio.sleep(4.1)
        assert await stage.see("b") == (["b1", "b2"], True)

    on_stage(scenario)


def test_concurrent_ticks_share_a_list_in_flight() -> None:
    async def scenario(stage: Stage) -> None:
        both = await asyncio.gather(stage.see("a"), stage.see("b"))
        assert list(both) == [(["a1"], True), (["b1"], False)]
        assert stage.asked() == 1

    on_stage(scenario)


def test_list_goes_on_where_the_service_that_began_it_is_deleted() -> None:
    """Deleting one of many services failed the ticks of up to 31 others."""

    async def scenario(stage: Stage) -> None:
        first = asyncio.create_task(stage.see("a"))
        second = asyncio.create_task(stage.see("b"))
        await asyncio.sleep(0.001)
        first.cancel()
        assert await second == (["b1"], False)
        assert stage.asked() == 1

    on_stage(scenario)


@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_service_whose_label_too_many_foreign_objects_have_is_read_alone(kind: str) -> None:
    """Any tenant may put a service's label on objects of its own namespace, of any size."""

    async def scenario(stage: Stage) -> None:
        stage.disguise(kind, "b", MOST_STRANGE)
        assert await stage.see("a") == (["a1"], True)
        assert await stage.see("b") == (["b1"], False)
        stage.disguise(kind, "b", MOST_STRANGE + 1)
        await asyncio.sleep(4.0)
        assert await stage.see("a") == (["a1"], True)
        shared = stage.asked()
        assert await stage.see("b") == (["b1"], True)
        stage.serve("c")
        stage.add("c", "c1")
        for _ in range(3):
            await asyncio.sleep(4.0)
            assert await stage.see("a") == (["a1"], True)
            assert await stage.see("c") == (["c1"], False)
            assert await stage.see("b") == (["b1"], True)
        assert stage.asked() == shared + 1 + 3 * 2
        await asyncio.sleep(CROWDED_FOR_S)
        stage.disguise(kind, "b", 0)
        await stage.see("a")
        assert await stage.see("b") == (["b1"], False)

    on_stage(scenario, clusterwide=True)


def test_service_of_very_many_pods_reads_alone() -> None:
    async def scenario(stage: Stage) -> None:
        for number in range(MOST_PODS):
            stage.add("b", f"b{number + 2}")
        assert await stage.see("a") == (["a1"], True)
        pods, own = await stage.see("b")
        assert own
        assert len(pods) == MOST_PODS + 1
        await asyncio.sleep(4.0)
        await stage.see("a")
        assert (await stage.see("b"))[1]

    on_stage(scenario)


def test_scaling_or_changed_service_reads_alone() -> None:
    async def scenario(stage: Stage) -> None:
        stage.shared.moves("default/b", moves=True)
        await stage.see("a")
        assert await stage.see("b") == (["b1"], True)
        stage.shared.moves("default/b", moves=False)
        await asyncio.sleep(4.0)
        await stage.see("a")
        stage.add("b", "b2")
        stage.shared.invalidate("default/b")
        assert await stage.see("b") == (["b1", "b2"], True)
        assert await stage.see("a", ahead_s=0.0) == (["a1"], True)

    on_stage(scenario)


def test_external_mode_and_target_ref_share_no_reads() -> None:
    async def scenario(stage: Stage) -> None:
        stage.serve("c", scaling={"mode": "External"})
        stage.serve("d", targetRef={"kind": "Deployment", "name": "d"})
        stage.cluster.calls.clear()
        await stage.see("a")
        assert [await stage.see(name) for name in "bcd"] == [
            (["b1"], False),
            ([], True),
            ([], True),
        ]

    on_stage(scenario)


def test_deployment_without_label_is_read_by_name() -> None:
    async def scenario(stage: Stage) -> None:
        deployment = stage.cluster.find("Deployment", "b")
        assert deployment is not None
        deployment["metadata"]["labels"] = {}
        await stage.see("a")
        assert await stage.see("b") == (["b1"], True)
        assert stage.cluster.calls[-2:] == [("get", "Deployment"), ("list_all", "Pod")]

    on_stage(scenario)


@pytest.mark.parametrize(("clusterwide", "lists"), [(True, 1), (False, 2)])
def test_clusterwide_operator_lists_all_namespaces_at_once(clusterwide: bool, lists: int) -> None:
    async def scenario(stage: Stage) -> None:
        stage.serve("a", "other")
        stage.add("a", "a2", "other")
        assert await stage.see("a") == (["a1"], True)
        assert await stage.see("a", namespace="other") == (["a2"], not clusterwide)
        assert stage.asked() == lists

    on_stage(scenario, clusterwide=clusterwide)


def test_shared_list_takes_the_services_due_first() -> None:
    async def scenario(stage: Stage) -> None:
        many = [f"s{number}" for number in range(MOST)]
        for name in many:
            stage.serve(name)
        await stage.see("a")  # and with it b, and the first of the many, but for two
        assert [(await stage.see(name))[1] for name in many] == [False] * (MOST - 2) + [True, False]

    on_stage(scenario)


def test_failed_shared_list_fails_all_and_is_retried() -> None:
    async def scenario(stage: Stage) -> None:
        stage.cluster.fail("list_all", "Pod", Unavailable("the server is overloaded (503)"))
        found = await asyncio.gather(stage.see("a"), stage.see("b"), return_exceptions=True)
        assert [str(one) for one in found] == ["the server is overloaded (503)"] * 2
        assert await stage.see("b") == (["b1"], True)

    on_stage(scenario)


@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_services_of_a_list_with_an_object_too_large_to_read_are_read_alone(kind: str) -> None:
    """A foreign object with a service's label is in no list of the service's own namespace."""

    async def scenario(stage: Stage) -> None:
        stage.cluster.fail("list_all", kind, AnswerTooLarge("at most 4194304 bytes"))
        both = await asyncio.gather(stage.see("a"), stage.see("b"))
        assert list(both) == [(["a1"], True), (["b1"], True)]
        await asyncio.sleep(4.0)
        assert await stage.see("a") == (["a1"], True)
        assert await stage.see("b") == (["b1"], True), "the list is not tried again at once"
        await asyncio.sleep(CROWDED_FOR_S)
        await stage.see("a")
        assert await stage.see("b") == (["b1"], False)

    on_stage(scenario, clusterwide=True)


def test_cancelled_tick_leaves_its_list_to_waiting_ticks() -> None:
    async def scenario(stage: Stage) -> None:
        first = asyncio.create_task(stage.see("a"))
        await asyncio.sleep(0.001)
        second = asyncio.create_task(stage.see("b"))
        await asyncio.sleep(0.0)
        first.cancel()
        found = await asyncio.gather(first, second, return_exceptions=True)
        assert found[1] == (["b1"], False)
        assert await stage.see("b") == (["b1"], True)

    on_stage(scenario)


class PodLists:
    """Record of the LISTs of pods: by a service of this name, or shared."""

    ALL = "all"

    def __init__(self, world: World) -> None:
        self.asked: list[str] = []
        self._list_all = world.cluster.list_all
        world.cluster.list_all = self._listed  # type: ignore[method-assign]

    async def _listed(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
    ) -> list[Manifest]:
        if kind == "Pod":
            shared = " in " in label_selector
            self.asked.append(self.ALL if shared else label_selector.partition("=")[2])
        return await self._list_all(api_version, kind, namespace, label_selector, kept)


def _names() -> Sequence[str]:
    return [f"s{one}" for one in range(REAL)]


def _create(world: World, **changes: Any) -> None:
    for name in _names():
        world.create(name, **changes)
    for one in range(OTHERS):
        world.create(f"other{one}", target="nowhere")


def test_settled_services_share_reads() -> None:
    async def scenario(world: World) -> None:
        lists = PodLists(world)
        _create(world)
        await world.run_for(60.0)
        lists.asked.clear()
        decided = len(world.recorder.decisions)
        await world.run_for(10.0)
        ticks = len(world.recorder.decisions) - decided
        assert ticks >= 4 * REAL
        assert set(lists.asked) == {PodLists.ALL}
        assert len(lists.asked) <= ticks

    play(scenario)


def test_replicas_are_written_only_from_own_reads() -> None:
    async def scenario(world: World) -> None:
        lists = PodLists(world)
        _create(world, scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        await world.run_for(60.0)
        world.pods.arrivals_rps["s3"] = 4 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas("s3") >= 4
        await world.run_for(60.0)
        lists.asked.clear()
        world.pods.arrivals_rps["s3"] = 0.0
        while world.replicas("s3") >= 4:
            await world.run_for(0.1)
        assert lists.asked.count("s3") >= 1
        assert set(lists.asked) == {"s3", PodLists.ALL}
        assert all(world.replicas(name) == 1 for name in _names() if name != "s3")

    play(scenario)
