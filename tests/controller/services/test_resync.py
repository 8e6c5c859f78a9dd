"""LISTs keep the cache true: how often, after a watch has ended, and when some of them fail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any, cast

import pytest

from headroom.controller.ports import Cluster
from headroom.controller.services.resync import Resync
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import ClusterError, Forbidden, NotFound, Unauthenticated, Unavailable
from support.virtual_time import VirtualTimeLoop

Scenario = Callable[[Resync], Coroutine[Any, Any, None]]


class Lists:
    """A cluster that is only ever listed."""

    def __init__(self, services: int = 1) -> None:
        self.services = services
        self.failures: dict[str | None, ClusterError] = {}
        self.version = 100
        self.at_s: list[float] = []
        self.asked: list[tuple[str | None, float]] = []
        self.unlisted: list[dict[str, str]] = []
        self.too_large: set[str] = set()
        self.unread: list[list[tuple[str, str]]] = []
        self.cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)

    async def list_at(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[dict[str, Any]], dict[str, Any]] = lambda one: one,
        left_out: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> tuple[list[dict[str, Any]], str]:
        self.at_s.append(asyncio.get_running_loop().time())
        self.asked.append((namespace, self.at_s[-1]))
        if namespace in self.failures:
            raise self.failures[namespace]
        place = namespace or "default"
        found = [_service(f"{place}-{n}", place) for n in range(self.services)]
        for one in found:
            if one["metadata"]["uid"] in self.too_large:
                left_out(one)
        read = [kept(one) for one in found if one["metadata"]["uid"] not in self.too_large]
        return read, str(self.version)


def _service(uid: str, namespace: str) -> dict[str, Any]:
    names = {"uid": uid, "name": uid, "namespace": namespace}
    return {"metadata": {**names, "resourceVersion": "7"}}


def play(lists: Lists, scenario: Scenario, *namespaces: str) -> None:
    async def run() -> None:
        freshness = Resync(
            cast(Cluster, lists),
            lists.cache,
            namespaces,
            chance=random.Random(7),
            on_unlisted=lambda unlisted: lists.unlisted.append(dict(unlisted)),
            on_unread=lambda unread: lists.unread.append(list(unread)),
        )
        keeping = asyncio.create_task(freshness.run())
        await scenario(freshness)
        keeping.cancel()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


async def a_minute(_: Resync) -> None:
    await asyncio.sleep(61.0)


@pytest.mark.parametrize(
    ("services", "every_s"), [(1, 5.0), (166, 5.0), (190, 5.7), (1000, 30.0), (5000, 60.0)]
)
def test_resync_with_many_services_lists_less_often(services: int, every_s: float) -> None:
    lists = Lists(services)
    play(lists, a_minute)
    assert lists.at_s == pytest.approx([n * every_s for n in range(int(61 / every_s) + 1)])


def test_ended_watch_causes_one_list() -> None:
    async def scenario(freshness: Resync) -> None:
        await asyncio.sleep(12.0)
        freshness.request()
        await asyncio.sleep(1.0)
        for _ in range(60):
            freshness.request()
            await asyncio.sleep(0.1)
        await asyncio.sleep(20.0)

    lists = Lists(1000)
    play(lists, scenario)
    assert lists.at_s == pytest.approx([0.0, 12.0, 17.0, 22.0])


@pytest.mark.parametrize(
    ("error", "retried_s"),
    [
        (Unavailable("down"), 2.0),
        (Unavailable("busy", retry_after_s=7.0), 7.0),
        (Forbidden("no"), 2.0),
    ],
)
def test_failed_list_is_retried_soon(error: ClusterError, retried_s: float) -> None:
    async def scenario(_: Resync) -> None:
        await asyncio.sleep(1.0)
        lists.failures.clear()
        await asyncio.sleep(9.0)

    lists = Lists()
    lists.failures[None] = error
    play(lists, scenario)
    assert lists.at_s[:2] == pytest.approx([0.0, retried_s])
    assert lists.cache.synced.is_set()


@pytest.mark.parametrize("end", [None, Forbidden("no"), Unavailable("down")])
def test_time_without_accepted_credentials_ends_with_another_answer(
    end: ClusterError | None,
) -> None:
    async def scenario(resync: Resync) -> None:
        await asyncio.sleep(1.0)
        assert resync.unauthenticated_s() == 0.0
        lists.failures[None] = Unauthenticated("Unauthorized (401)")
        await asyncio.sleep(90.0)
        assert resync.unauthenticated_s() == pytest.approx(86.0)
        lists.failures.clear()
        if end is not None:
            lists.failures[None] = end
        await asyncio.sleep(3.0)
        assert resync.unauthenticated_s() == 0.0

    lists = Lists()
    play(lists, scenario)


@pytest.mark.parametrize("error", [Forbidden("no"), Unavailable("it cannot be decoded")])
def test_unlistable_namespace_hides_no_other(error: ClusterError) -> None:
    async def scenario(resync: Resync) -> None:
        await asyncio.sleep(0.1)
        assert lists.cache.uids() == ("b-0",)
        assert lists.cache.synced.is_set()
        assert lists.cache.unread == {"a"}
        assert resync.unlisted == {"a": str(error)}

    lists = Lists()
    lists.failures["a"] = error
    play(lists, scenario, "a", "b")


def test_unlistable_namespace_is_tried_again_at_growing_intervals_and_the_others_as_usual() -> None:
    async def scenario(_: Resync) -> None:
        await asyncio.sleep(240.0)

    lists = Lists()
    lists.failures["a"] = Forbidden("no")
    play(lists, scenario, "a", "b")
    tried, others = ([at_s for one, at_s in lists.asked if one == name] for name in "ab")
    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses[0] <= 4.0
    assert sorted(pauses[:4]) == pauses[:4]
    assert all(24.0 <= pause <= 32.0 for pause in pauses[5:])
    assert others == pytest.approx([n * 5.0 for n in range(49)])


def test_namespace_that_becomes_readable_is_read_and_said_to_be(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(_: Resync) -> None:
        await asyncio.sleep(120.0)
        lists.failures.clear()
        await asyncio.sleep(33.0)
        assert lists.cache.unread == frozenset()
        assert lists.cache.uids() == ("b-0", "a-0")
        lists.failures["a"] = Forbidden("again")
        await asyncio.sleep(60.0)
        assert lists.cache.unread == frozenset(), "its services are known"
        assert lists.cache.uids() == ("b-0", "a-0")

    lists = Lists()
    lists.failures["a"] = Forbidden("no")
    with caplog.at_level("INFO"):
        play(lists, scenario, "a", "b")
    assert lists.unlisted == [{"a": "no"}, {}, {"a": "again"}]
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in said] == [
        "namespace a cannot be read",
        "namespace a can be read again",
        "namespace a cannot be read",
    ]
    assert "watch.namespaces" in said[0]


def test_service_that_is_too_large_is_named_once_and_hides_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(_: Resync) -> None:
        await asyncio.sleep(1.0)
        assert set(lists.cache.uids()) == {"a-1", "b-1"}
        lists.too_large = set()
        await asyncio.sleep(10.0)
        lists.too_large = {"a-0"}
        await asyncio.sleep(20.0)
        assert set(lists.cache.uids()) == {"a-0", "a-1", "b-0", "b-1"}

    lists = Lists(2)
    lists.too_large = {"a-0", "b-0"}
    play(lists, scenario, "a", "b")
    assert lists.unread == [
        [("a", "a-0")],
        [("a", "a-0"), ("b", "b-0")],
        [("b", "b-0")],
        [],
        [("a", "a-0")],
    ]
    said = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert said == ["a/a-0", "b/b-0", "a/a-0"]


def test_no_namespace_that_can_be_read_is_no_answer() -> None:
    lists = Lists()
    lists.failures = {"a": Forbidden("no"), "b": Forbidden("no")}
    play(lists, a_minute, "a", "b")
    assert not lists.cache.synced.is_set()
    assert lists.unlisted == []


def test_missing_kind_ends_readiness() -> None:
    async def scenario(_: Resync) -> None:
        await asyncio.sleep(1.0)
        assert lists.cache.synced.is_set()
        lists.failures[None] = NotFound("no such kind")
        await asyncio.sleep(5.0)

    lists = Lists()
    play(lists, scenario)
    assert not lists.cache.synced.is_set()
    assert lists.cache.uids() == ("default-0",)


def test_failed_list_is_logged_once_until_it_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(_: Resync) -> None:
        lists.failures[None] = Unavailable("down")
        await asyncio.sleep(11.0)
        lists.failures.clear()
        await asyncio.sleep(10.0)
        lists.failures[None] = Unavailable("down")
        await asyncio.sleep(11.0)
        lists.failures[None] = Unavailable("busy")
        await asyncio.sleep(6.0)

    lists = Lists()
    play(lists, scenario)
    said = [record.getMessage() for record in caplog.records]
    assert [line.rsplit(": ", 1)[1] for line in said] == ["down", "down", "busy"]


def test_first_list_error_is_raised_and_other_namespaces_are_listed() -> None:
    async def scenario(_: Resync) -> None:
        await asyncio.sleep(1.0)

    lists = Lists()
    lists.failures = {"a": Unavailable("first", retry_after_s=9.0), "c": Forbidden("second")}
    play(lists, scenario, "a", "b", "c", "d")
    assert lists.cache.uids() == ("b-0", "d-0")
    assert lists.at_s == [0.0] * 4


@pytest.mark.parametrize(
    ("behind_s", "known"),
    [(50.0, ("default-0", "default-1", "default-2")), (70.0, ("default-0",))],
    ids=["an API server that lags", "a restored etcd"],
)
def test_lists_that_stay_behind_for_a_minute_are_accepted(
    behind_s: float, known: tuple[str, ...]
) -> None:
    async def scenario(_: Resync) -> None:
        await asyncio.sleep(61.0)
        lists.services, lists.version = 1, 6  # below what is known of the other two
        await asyncio.sleep(behind_s)
        assert lists.cache.uids() == known

    lists = Lists(3)
    play(lists, scenario)


def test_lists_of_which_one_is_not_behind_are_not_accepted() -> None:
    async def scenario(resync: Resync) -> None:
        await asyncio.sleep(1.0)
        lists.services = 1
        for _ in range(5):
            lists.version = 6
            await asyncio.sleep(50.0)
            lists.services, lists.version = 3, 100
            await asyncio.sleep(5.0)
            lists.services = 1
        assert len(lists.cache) == 3

    lists = Lists(3)
    play(lists, scenario)
