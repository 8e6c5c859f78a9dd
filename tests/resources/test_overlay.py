"""Merging a user's pod template into the generated one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.resources.overlay import lay_over
from support.structural_objects import JSON

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
    "a port without a name is added": (
        {"ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]},
        {"ports": [{"containerPort": 9090}, {"containerPort": 8000, "protocol": "UDP"}]},
        {
            "ports": [
                {"name": "http", "containerPort": 8000, "protocol": "TCP"},
                {"containerPort": 9090},
                {"containerPort": 8000, "protocol": "UDP"},
            ]
        },
    ),
    "a port of the same number merges and keeps the generated name": (
        {"ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]},
        {"ports": [{"name": "web", "containerPort": 8000, "hostPort": 80}]},
        {"ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP", "hostPort": 80}]},
    ),
    "a port of the same name merges before one of the same number": (
        {"ports": [{"name": "http", "containerPort": 8000}]},
        {"ports": [{"containerPort": 8000}, {"name": "http", "containerPort": 9000}]},
        {"ports": [{"name": "http", "containerPort": 9000}, {"containerPort": 8000}]},
    ),
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


PORTS = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.sampled_from([8000, 9090])},
        optional={"name": st.sampled_from(["http", "web"]), "protocol": st.just("UDP")},
    ),
    max_size=3,
)


@given(PORTS)
def test_ports_merge_once_and_http_stays(overlay: list[dict[str, Any]]) -> None:
    once = lay_over({"ports": [{"name": "http", "containerPort": 8000}]}, {"ports": overlay})
    assert once["ports"][0]["name"] == "http"
    assert lay_over(once, {"ports": overlay}) == once
