"""The cache tells what is new and what is gone, whatever order the news comes in."""

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


def test_a_new_spec_is_news_and_a_new_status_is_not(told: Told) -> None:
    told.cache.saw(service("a", version=1))
    told.cache.saw(service("a", version=2))
    told.cache.saw(service("a", version=3, generation=2))
    told.cache.saw(service("a", version=4, generation=2, deletionTimestamp="now"))
    assert told.news == ["changed a"] * 3


def test_a_state_from_the_past_is_passed_over(told: Told) -> None:
    told.cache.saw(service("a", version=10, generation=2))
    told.cache.saw(service("a", version=9, generation=1))
    assert told.cache.get("a") == service("a", version=10, generation=2)
    assert told.news == ["changed a"]


def test_a_list_replaces_everything(told: Told) -> None:
    told.cache.saw(service("a"))
    told.cache.saw(service("b"))
    begun = told.cache.begin_list()
    told.cache.replace([service("b"), service("c")], begun)
    assert told.news == ["changed a", "changed b", "gone a", "changed c"]
    assert len(told.cache) == 2


def test_the_dead_are_remembered_for_long_and_not_for_ever(told: Told) -> None:
    for number in range(5000):
        told.cache.forget(str(number))
    told.cache.saw(service("4999"))
    told.cache.saw(service("904"))
    assert len(told.cache) == 0
    told.cache.saw(service("0"))
    assert told.cache.uids() == ("0",)


def test_a_list_from_the_past_buries_nothing_that_is_newer(told: Told) -> None:
    told.cache.saw(service("old", version=5))
    told.cache.saw(service("young", version=50))
    told.cache.replace([], told.cache.begin_list(), version="40")
    assert told.news == ["changed old", "changed young", "gone old"]
    told.cache.replace([], told.cache.begin_list(), version="50")
    assert told.news[3:] == ["gone young"]


def test_a_list_of_a_namespace_says_nothing_of_others(told: Told) -> None:
    told.cache.saw(service("here", namespace="here"))
    told.cache.saw(service("there", namespace="there"))
    told.cache.replace([], told.cache.begin_list(), namespace="here")
    assert told.news == ["changed here", "changed there", "gone here"]


def test_what_is_created_while_a_list_is_under_way_stays(told: Told) -> None:
    begun = told.cache.begin_list()
    told.cache.saw(service("young", version=50))
    told.cache.replace([], begun)
    assert told.cache.get("young")
    told.cache.replace([], told.cache.begin_list())
    assert told.cache.get("young") is None


def test_what_is_deleted_while_a_list_is_under_way_stays_deleted(told: Told) -> None:
    told.cache.saw(service("a"))
    begun = told.cache.begin_list()
    told.cache.forget("a")
    told.cache.replace([service("a")], begun)
    assert told.cache.get("a") is None
    assert told.news == ["changed a", "gone a"]


def test_a_deletion_of_what_was_never_seen_is_no_news(told: Told) -> None:
    told.cache.forget("a")
    assert told.news == []


def test_a_name_leads_to_the_service_that_has_it_now(told: Told) -> None:
    cache = told.cache
    assert cache.named("shop", "a") is None
    cache.saw(service("old", namespace="shop", name="a"))
    cache.saw(service("new", namespace="shop", name="a"))
    cache.forget("old")
    assert cache.named("shop", "a") == "new"
    assert cache.named("other", "a") is None
    cache.forget("new")
    assert cache.named("shop", "a") is None


def test_who_wrote_which_field_is_left_out(told: Told) -> None:
    written = service("a", managedFields=[{"manager": "x"}])
    told.cache.saw(written)
    assert told.cache.get("a") == service("a")
    assert "managedFields" in written["metadata"]


def test_where_versions_are_no_numbers_every_state_counts(told: Told) -> None:
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


def test_a_state_of_the_same_age_is_taken_in_where_it_has_another_name_for_it(told: Told) -> None:
    told.cache.saw(service("a", version=5))
    first = told.cache.get("a")
    told.cache.saw(service("a", version=5) | {"status": {"x": 1}})
    assert told.cache.get("a") is first
    told.cache.saw(service("a", version=6) | {"status": {"x": 1}})
    assert told.cache.get("a") is not first


def test_the_dead_stay_dead_when_they_are_seen_again(told: Told) -> None:
    for number in range(4097):
        told.cache.forget(str(number))
    told.cache.saw(service("1"))
    assert told.cache.uids() == ()
    told.cache.saw(service("0"))
    assert told.cache.uids() == ("0",)


def test_what_is_known_already_is_kept_instead_of_another_copy() -> None:
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    known = {"metadata": {"uid": "a", "resourceVersion": "7"}}
    cache.saw(known)
    assert cache.kept({"metadata": {"uid": "a", "resourceVersion": "7"}}) is cache.get("a")
    for other in ({"uid": "a", "resourceVersion": "8"}, {"uid": "b", "resourceVersion": "7"}):
        fresh = {"metadata": other}
        assert cache.kept(fresh) is fresh
