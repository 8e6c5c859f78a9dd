"""Merging a user's pod template into the generated one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from headroom.resources.overlay import lay_over
from structural_objects import JSON

TABLE: dict[str, tuple[Any, Any, Any]] = {
    "maps merge": ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
    "maps merge at every depth": (
        {"a": {"b": {"c": 1}}},
        {"a": {"b": {"d": 2}}},
        {"a": {"b": {"c": 1, "d": 2}}},
    ),
    "null removes": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "null of what is not there is nothing": (
        {"a": 1},
        {"b": None, "c": {"d": None}},
        {"a": 1, "c": {}},
    ),
    "named entries merge by name": (
        [{"name": "x", "a": 1}, {"name": "y"}],
        [{"name": "y", "b": 2}, {"name": "z"}],
        [{"name": "x", "a": 1}, {"name": "y", "b": 2}, {"name": "z"}],
    ),
    "an empty named list changes nothing": ([{"name": "x"}], [], [{"name": "x"}]),
    "other lists are replaced": (["ALL"], ["NET_RAW"], ["NET_RAW"]),
    "entries without names are replaced": ([{"key": "a"}], [{"key": "b"}], [{"key": "b"}]),
    "names that are there twice tell nothing apart": (
        [{"name": "x", "a": 1}],
        [{"name": "x"}, {"name": "x"}],
        [{"name": "x"}, {"name": "x"}],
    ),
    "another shape stands as it is": ({"a": {"b": 1}}, {"a": "c"}, {"a": "c"}),
    "mounts merge by path": (
        {"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]},
        {
            "volumeMounts": [
                {"name": "tmp", "mountPath": "/cache"},
                {"name": "big", "mountPath": "/tmp"},
            ]
        },
        {
            "volumeMounts": [
                {"name": "big", "mountPath": "/tmp"},
                {"name": "tmp", "mountPath": "/cache"},
            ]
        },
    ),
}


@pytest.mark.parametrize(("generated", "overlay", "merged"), TABLE.values(), ids=TABLE)
def test_overlay_merges(generated: Any, overlay: Any, merged: Any) -> None:
    assert lay_over(generated, overlay) == merged


@given(JSON, JSON)
def test_any_two_values_merge_without_mutation(generated: Any, overlay: Any) -> None:
    before = copy.deepcopy((generated, overlay))
    lay_over(generated, overlay)
    assert (generated, overlay) == before


@given(JSON, JSON)
def test_overlay_is_idempotent(generated: Any, overlay: Any) -> None:
    once = lay_over({"a": generated}, {"a": overlay})
    assert lay_over(once, {"a": overlay}) == once
