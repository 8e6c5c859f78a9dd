"""The cache reports what is new and what is gone, in whatever order events arrive."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.services.service_cache import ServiceCache


class Told:
    def __init__(self) -> None:
        self.news: list[str] = []
        self.cache = ServiceCache(
            on_change=lambda uid: self.news.append(f"changed {uid}"),
            on_gone=lambda uid: self.news.append(f"gone {uid}"),
        )


@pytest.fixture
def told() -> Told:
    return Told()


def service(uid: str, version: int = 1, generation: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "uid": uid,
            "resourceVersion": str(version),
            "generation": generation,
            **metadata,
        }
    }


def test_cache_with_new_spec_notifies_and_with_new_status_does_not(told: Told) -> None:
    told.cache.saw(service("a", version=1))
    told.cache.saw(service("a", version=2))
    told.cache.saw(service("a", version=3, generation=2))
    told.cache.saw(service("a", version=4, generation=2, deletionTimestamp="now"))
    assert told.news == ["changed a"] * 3


def test_cache_ignores_an_older_version(told: Told) -> None:
    told.cache.saw(service("a", version=10, generation=2))
    told.cache.saw(service("a", version=9, generation=1))
    assert told.cache.get("a") == service("a", version=10, generation=2)
    assert told.news == ["changed a"]


def test_list_replaces_the_cache(told: Told) -> None:
    told.cache.saw(service("a"))
    told.cache.saw(service("b"))
    begun = told.cache.begin_list()
    told.cache.replace([service("b"), service("c")], begun)
    assert told.news == ["changed a", "changed b", "gone a", "changed c"]
    assert len(told.cache) == 2


def test_deleted_uids_are_remembered_up_to_a_bound(told: Told) -> None:
    for number in range(5000):
        told.cache.forget(str(number))
    told.cache.saw(service("4999"))
    told.cache.saw(service("904"))
    assert len(told.cache) == 0
    told.cache.saw(service("0"))
    assert told.cache.uids() == ("0",)


def test_stale_list_removes_nothing_newer(told: Told) -> None:
    told.cache.saw(service("old", version=5))
    told.cache.saw(service("young", version=50))
    told.cache.replace([], told.cache.begin_list(), version="40")
    assert told.news == ["changed old", "changed young", "gone old"]
    told.cache.replace([], told.cache.begin_list(), version="50")
    assert told.news[3:] == ["gone young"]


def test_service_that_a_list_shows_older_than_known_starts_over(told: Told) -> None:
    """Versions of a restored etcd have caught up; generation 4 is another spec than before."""
    told.cache.saw(service("a", version=50, generation=4) | {"spec": {"minReplicas": 1}})
    told.cache.saw(service("b", version=10))
    restored = service("a", version=45, generation=4) | {"spec": {"minReplicas": 7}}
    told.cache.replace([restored, service("b", version=10)], told.cache.begin_list(), version="49")
    assert told.news == ["changed a", "changed b"], "what a lagging API server may say"
    told.cache.replace([restored, service("b", version=10)], told.cache.begin_list(), version="50")
    assert told.news[2:] == ["gone a", "changed a"]
    assert told.cache.get("a") == restored
    told.cache.saw(service("a", version=46, generation=5))
    assert told.news[4:] == ["changed a"]


def test_service_that_changes_during_a_list_is_not_reverted(told: Told) -> None:
    told.cache.saw(service("a", version=10))
    begun = told.cache.begin_list()
    told.cache.saw(service("a", version=30, generation=2))
    told.cache.replace([service("a", version=10)], begun, version="20")
    assert told.news == ["changed a"] * 2
    assert told.cache.get("a") == service("a", version=30, generation=2)


def test_list_of_a_restored_history_is_the_truth_whatever_was_known(told: Told) -> None:
    for uid, version in (("kept", 10), ("back", 60), ("forth", 62), ("lost", 70), ("undead", 20)):
        told.cache.saw(service(uid, version=version))
    told.cache.forget("undead")
    told.news.clear()
    begun = told.cache.begin_list()
    told.cache.saw(service("young", version=66))
    told.cache.forget("dead")
    listed = {"kept": 10, "back": 40, "forth": 64, "undead": 20, "dead": 30}
    told.cache.replace(
        [service(uid, version=version) for uid, version in listed.items()],
        begun,
        version="65",
        restored=True,
    )
    assert {uid: told.cache.get(uid) for uid in told.cache.uids()} == {
        uid: service(uid, version=version)
        for uid, version in (listed | {"young": 66}).items()
        if uid != "dead"
    }
    assert sorted(told.news) == [
        *("changed back", "changed forth", "changed undead", "changed young"),
        *("gone back", "gone forth", "gone lost"),
    ]


def test_list_of_one_namespace_keeps_other_namespaces(told: Told) -> None:
    told.cache.saw(service("here", namespace="here"))
    told.cache.saw(service("there", namespace="there"))
    told.cache.replace([], told.cache.begin_list(), namespace="here")
    assert told.news == ["changed here", "changed there", "gone here"]


def test_service_created_during_a_list_is_kept(told: Told) -> None:
    begun = told.cache.begin_list()
    told.cache.saw(service("young", version=50))
    told.cache.replace([], begun)
    assert told.cache.get("young")
    told.cache.replace([], told.cache.begin_list())
    assert told.cache.get("young") is None


def test_service_deleted_during_a_list_stays_deleted(told: Told) -> None:
    told.cache.saw(service("a"))
    begun = told.cache.begin_list()
    told.cache.forget("a")
    told.cache.replace([service("a")], begun)
    assert told.cache.get("a") is None
    assert told.news == ["changed a", "gone a"]


def test_deletion_of_an_unknown_service_does_not_notify(told: Told) -> None:
    told.cache.forget("a")
    assert told.news == []


def test_name_resolves_to_the_present_uid(told: Told) -> None:
    cache = told.cache
    assert cache.named("shop", "a") is None
    cache.saw(service("old", namespace="shop", name="a"))
    cache.saw(service("new", namespace="shop", name="a"))
    cache.forget("old")
    assert cache.named("shop", "a") == "new"
    assert cache.named("other", "a") is None
    cache.forget("new")
    assert cache.named("shop", "a") is None


def test_cache_drops_managed_fields(told: Told) -> None:
    written = service("a", managedFields=[{"manager": "x"}])
    told.cache.saw(written)
    assert told.cache.get("a") == service("a")
    assert "managedFields" in written["metadata"]


def test_cache_with_opaque_versions_takes_every_state(told: Told) -> None:
    for version, generation in (("x", 1), ("y", 2), ("", 3), ("", 4)):
        seen = service("a", generation=generation)
        seen["metadata"]["resourceVersion"] = version
        told.cache.saw(seen)
        assert told.cache.get("a") == seen
    same = service("a", generation=5)
    same["metadata"]["resourceVersion"] = "z"
    told.cache.saw(same)
    told.cache.saw(same | {"status": {}})
    assert told.cache.get("a") == same
    told.cache.replace([], told.cache.begin_list(), version="x")
    assert told.news == [*["changed a"] * 5, "gone a"]


def test_cache_takes_an_equal_version_under_another_spelling(told: Told) -> None:
    told.cache.saw(service("a", version=5))
    first = told.cache.get("a")
    told.cache.saw(service("a", version=5) | {"status": {"x": 1}})
    assert told.cache.get("a") is first
    told.cache.saw(service("a", version=6) | {"status": {"x": 1}})
    assert told.cache.get("a") is not first


def test_deleted_service_seen_again_stays_deleted(told: Told) -> None:
    for number in range(4097):
        told.cache.forget(str(number))
    told.cache.saw(service("1"))
    assert told.cache.uids() == ()
    told.cache.saw(service("0"))
    assert told.cache.uids() == ("0",)


def test_cache_keeps_the_known_copy_of_an_equal_object() -> None:
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    known = {"metadata": {"uid": "a", "resourceVersion": "7"}}
    cache.saw(known)
    assert cache.kept({"metadata": {"uid": "a", "resourceVersion": "7"}}) is cache.get("a")
    for other in ({"uid": "a", "resourceVersion": "8"}, {"uid": "b", "resourceVersion": "7"}):
        fresh = {"metadata": other}
        assert cache.kept(fresh) is fresh
