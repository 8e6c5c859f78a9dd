"""Ownership of a cluster's folder: locks decide, and folders without a lock are removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster import ownership
from cluster.errors import ClusterError
from cluster.keeper import keep_logs
from cluster.layout import Cache, Layout


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def test_folder_is_owned_until_its_lock_is_closed(cache: Cache) -> None:
    layout = Layout.named(cache, "mine")
    with ownership.claim(layout):
        assert ownership.is_held(layout)
        assert ownership.living(cache) == [layout]
        assert ownership.sweep(cache) == []
    assert not ownership.is_held(layout)
    assert ownership.sweep(cache) == ["mine"]
    assert not layout.root.exists()


def test_a_keeper_is_known_once_it_has_signed(cache: Cache) -> None:
    layout = Layout.named(cache, "mine")
    with ownership.claim(layout) as lock:
        assert ownership.keeper_of(layout) is None
        ownership.sign(lock)
        assert ownership.keeper_of(layout) == os.getpid()
    assert ownership.keeper_of(layout) is None


def test_a_name_is_claimed_once(cache: Cache) -> None:
    layout = Layout.named(cache, "mine")
    with ownership.claim(layout), pytest.raises(ClusterError, match="down --name mine"):
        ownership.claim(layout)


def test_a_folder_that_is_just_being_made_is_not_swept(cache: Cache) -> None:
    layout = Layout.named(cache, "mine")
    layout.root.mkdir(parents=True)
    assert ownership.sweep(cache) == []
    os.utime(layout.root, (0, 0))
    assert ownership.sweep(cache) == ["mine"]


def test_logs_of_the_last_failures_are_kept_and_older_ones_forgotten(cache: Cache) -> None:
    for number in range(12):
        layout = Layout.named(cache, f"n{number}")
        layout.logs.mkdir(parents=True)
        (layout.logs / "etcd.log").write_text(str(number))
        keep_logs(layout, cache.kept_logs / layout.name)
        os.utime(cache.kept_logs / layout.name, (number, number))
    assert {path.name for path in cache.kept_logs.iterdir()} == {f"n{n}" for n in range(2, 12)}
