"""The cache reports new and deleted objects, in whatever order events arrive."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.services.service_cache import ServiceCache


class WatchedCache:
    def __init__(self) -> None:
        self.events: list[str] = []
        self.cache = ServiceCache(
            on_change=lambda uid: self.events.append(f"changed {uid}"),
            on_gone=lambda uid: self.events.append(f"gone {uid}"),
        )


@pytest.fixture
def watched() -> WatchedCache:
    return WatchedCache()


def service(uid: str, version: int = 1, generation: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "uid": uid,
            "resourceVersion": str(version),
            "generation": generation,
            **metadata,
        }
    }


def test_cache_with_new_spec_notifies_and_with_new_status_does_not(watched: WatchedCache) -> None:
    watched.cache.saw(service("a", version=1))
    watched.cache.saw(service("a", version=2))
    watched.cache.saw(service("a", version=3, generation=2))
    watched.cache.saw(service("a", version=4, generation=2, deletionTimestamp="now"))
    assert watched.events == ["changed a"] * 3


def test_cache_ignores_an_older_version(watched: WatchedCache) -> None:
    watched.cache.saw(service("a", version=10, generation=2))
    watched.cache.saw(service("a", version=9, generation=1))
    assert watched.cache.get("a") == service("a", version=10, generation=2)
    assert watched.events == ["changed a"]


@pytest.mark.parametrize(
    ("left_out", "events"),
    [
        ((), ["gone a", "gone b"]),
        (("a",), ["gone b"]),
        (("",), []),
    ],
    ids=["nothing", "a service", "a service without a name"],
)
def test_service_that_a_list_left_out_stays_as_it_is_known(
    watched: WatchedCache, left_out: tuple[str, ...], events: list[str]
) -> None:
    for uid in "abc":
        watched.cache.saw(service(uid))
    watched.events.clear()
    watched.cache.replace([service("c")], watched.cache.begin_list(), left_out=left_out)
    assert watched.events == events


def test_list_replaces_the_cache(watched: WatchedCache) -> None:
    watched.cache.saw(service("a"))
    watched.cache.saw(service("b"))
    begun = watched.cache.begin_list()
    watched.cache.replace([service("b"), service("c")], begun)
    assert watched.events == ["changed a", "changed b", "gone a", "changed c"]
    assert len(watched.cache) == 2


def test_deleted_uids_are_remembered_up_to_a_bound(watched: WatchedCache) -> None:
    for number in range(5000):
        watched.cache.forget(str(number))
    watched.cache.saw(service("4999"))
    watched.cache.saw(service("904"))
    assert len(watched.cache) == 0
    watched.cache.saw(service("0"))
    assert watched.cache.uids() == ("0",)


def test_stale_list_removes_nothing_newer(watched: WatchedCache) -> None:
    watched.cache.saw(service("old", version=5))
    watched.cache.saw(service("young", version=50))
    watched.cache.replace([], watched.cache.begin_list(), version="40")
    assert watched.events == ["changed old", "changed young", "gone old"]
    watched.cache.replace([], watched.cache.begin_list(), version="50")
    assert watched.events[3:] == ["gone young"]


def test_service_that_a_list_shows_older_than_known_starts_over(watched: WatchedCache) -> None:
    """Versions of a restored etcd have caught up; generation 4 is another spec than before."""
    watched.cache.saw(service("a", version=50, generation=4) | {"spec": {"minReplicas": 1}})
    watched.cache.saw(service("b", version=10))
    restored = service("a", version=45, generation=4) | {"spec": {"minReplicas": 7}}
    watched.cache.replace(
        [restored, service("b", version=10)], watched.cache.begin_list(), version="49"
    )
    assert watched.events == ["changed a", "changed b"], "what a lagging API server may say"
    watched.cache.replace(
        [restored, service("b", version=10)], watched.cache.begin_list(), version="50"
    )
    assert watched.events[2:] == ["gone a", "changed a"]
    assert watched.cache.get("a") == restored
    watched.cache.saw(service("a", version=46, generation=5))
    assert watched.events[4:] == ["changed a"]


def test_service_that_changes_during_a_list_is_not_reverted(watched: WatchedCache) -> None:
    watched.cache.saw(service("a", version=10))
    begun = watched.cache.begin_list()
    watched.cache.saw(service("a", version=30, generation=2))
    watched.cache.replace([service("a", version=10)], begun, version="20")
    assert watched.events == ["changed a"] * 2
    assert watched.cache.get("a") == service("a", version=30, generation=2)


def test_list_of_a_restored_history_is_the_truth_whatever_was_known(watched: WatchedCache) -> None:
    for uid, version in (("kept", 10), ("back", 60), ("forth", 62), ("lost", 70), ("undead", 20)):
        watched.cache.saw(service(uid, version=version))
    watched.cache.forget("undead")
    watched.events.clear()
    begun = watched.cache.begin_list()
    watched.cache.saw(service("young", version=66))
    watched.cache.forget("dead")
    listed = {"kept": 10, "back": 40, "forth": 64, "undead": 20, "dead": 30}
    watched.cache.replace(
        [service(uid, version=version) for uid, version in listed.items()],
        begun,
        version="65",
        restored=True,
    )
    assert {uid: watched.cache.get(uid) for uid in watched.cache.uids()} == {
        uid: service(uid, version=version)
        for uid, version in (listed | {"young": 66}).items()
        if uid != "dead"
    }
    assert sorted(watched.events) == [
        *("changed back", "changed forth", "changed undead", "changed young"),
        *("gone back", "gone forth", "gone lost"),
    ]


def test_list_of_one_namespace_keeps_other_namespaces(watched: WatchedCache) -> None:
    watched.cache.saw(service("here", namespace="here"))
    watched.cache.saw(service("there", namespace="there"))
    watched.cache.replace([], watched.cache.begin_list(), namespace="here")
    assert watched.events == ["changed here", "changed there", "gone here"]


def test_service_created_during_a_list_is_kept(watched: WatchedCache) -> None:
    begun = watched.cache.begin_list()
    watched.cache.saw(service("young", version=50))
    watched.cache.replace([], begun)
    assert watched.cache.get("young")
    watched.cache.replace([], watched.cache.begin_list())
    assert watched.cache.get("young") is None


def test_service_deleted_during_a_list_stays_deleted(watched: WatchedCache) -> None:
    watched.cache.saw(service("a"))
    begun = watched.cache.begin_list()
    watched.cache.forget("a")
    watched.cache.replace([service("a")], begun)
    assert watched.cache.get("a") is None
    assert watched.events == ["changed a", "gone a"]


def test_deletion_of_an_unknown_service_does_not_notify(watched: WatchedCache) -> None:
    watched.cache.forget("a")
    assert watched.events == []


def test_name_resolves_to_the_present_uid(watched: WatchedCache) -> None:
    cache = watched.cache
    assert cache.named("shop", "a") is None
    cache.saw(service("old", namespace="shop", name="a"))
    cache.saw(service("new", namespace="shop", name="a"))
    cache.forget("old")
    assert cache.named("shop", "a") == "new"
    assert cache.named("other", "a") is None
    cache.forget("new")
    assert cache.named("shop", "a") is None


def test_cache_drops_managed_fields(watched: WatchedCache) -> None:
    written = service("a", managedFields=[{"manager": "x"}])
    watched.cache.saw(written)
    assert watched.cache.get("a") == service("a")
    assert "managedFields" in written["metadata"]


def test_cache_with_opaque_versions_takes_every_state(watched: WatchedCache) -> None:
    for version, generation in (("x", 1), ("y", 2), ("", 3), ("", 4)):
        seen = service("a", generation=generation)
        seen["metadata"]["resourceVersion"] = version
        watched.cache.saw(seen)
        assert watched.cache.get("a") == seen
    same = service("a", generation=5)
    same["metadata"]["resourceVersion"] = "z"
    watched.cache.saw(same)
    watched.cache.saw(same | {"status": {}})
    assert watched.cache.get("a") == same
    watched.cache.replace([], watched.cache.begin_list(), version="x")
    assert watched.events == [*["changed a"] * 5, "gone a"]


def test_cache_takes_an_equal_version_under_another_spelling(watched: WatchedCache) -> None:
    watched.cache.saw(service("a", version=5))
    first = watched.cache.get("a")
    watched.cache.saw(service("a", version=5) | {"status": {"x": 1}})
    assert watched.cache.get("a") is first
    watched.cache.saw(service("a", version=6) | {"status": {"x": 1}})
    assert watched.cache.get("a") is not first


def test_deleted_service_seen_again_stays_deleted(watched: WatchedCache) -> None:
    for number in range(4097):
        watched.cache.forget(str(number))
    watched.cache.saw(service("1"))
    assert watched.cache.uids() == ()
    watched.cache.saw(service("0"))
    assert watched.cache.uids() == ("0",)


def test_cache_keeps_the_known_copy_of_an_equal_object() -> None:
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    known = {"metadata": {"uid": "a", "resourceVersion": "7"}}
    cache.saw(known)
    assert cache.kept({"metadata": {"uid": "a", "resourceVersion": "7"}}) is cache.get("a")
    for other in ({"uid": "a", "resourceVersion": "8"}, {"uid": "b", "resourceVersion": "7"}):
        fresh = {"metadata": other}
        assert cache.kept(fresh) is fresh
