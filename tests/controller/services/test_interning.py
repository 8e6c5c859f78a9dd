"""Equal parts of many services are kept once, and no value changes."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.api import InferenceService
from headroom.controller.services.interning import DEEPEST, MOST, TOO_DEEP, Interner
from headroom.controller.services.service_cache import ServiceCache
from support.controller_world import spec

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.text("ab", max_size=2),
)
JSON = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("ab", max_size=1), inner, max_size=3)
    ),
    max_leaves=12,
)


def body(name: str, **scaling: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}", "generation": 1}
    return {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": metadata | {"resourceVersion": "1", "managedFields": [{"manager": "x"}]},
        "spec": json.loads(
            json.dumps(spec(scaling={"minReplicas": 1, "maxReplicas": 5} | scaling))
        ),
    }


@settings(max_examples=200)
@given(st.lists(JSON, max_size=8))
def test_interned_json_is_equal_to_the_byte(values: list[Any]) -> None:
    same, before = Interner(), copy.deepcopy(values)
    given_back = [same.json(one) for one in values]
    assert list(map(json.dumps, given_back)) == list(map(json.dumps, before))
    assert values == before
    for one, other in zip(given_back, map(same.json, before), strict=True):
        assert not isinstance(one, dict | list) or one is other


def test_interner_keeps_number_types_apart() -> None:
    same = Interner()
    assert json.dumps([same.json([one]) for one in (1, 1.0, True)]) == "[[1], [1.0], [true]]"


def test_interner_shares_equal_parts() -> None:
    same = Interner()
    one, other = same.json({"a": {"x": [1, 2]}, "b": 1}), same.json({"a": {"x": [1, 2]}, "b": 2})
    assert one is not other
    assert one["a"] is other["a"]


def test_interner_is_bounded() -> None:
    same = Interner()
    first = same.json({"a": {"n": -1}})
    for number in range(2 * MOST):
        assert same.json({"a": {"n": number}}) == {"a": {"n": number}}
    assert same.json({"a": {"n": -1}}) == first
    assert len(same._parts) <= MOST


def test_interned_services_share_equal_fields() -> None:
    same = Interner()
    one, other, third = (
        same.service(InferenceService.parse(raw))
        for raw in (body("a"), body("b"), body("c", maxReplicas=9))
    )
    assert one == InferenceService.parse(body("a"))
    assert one.spec is other.spec
    assert third.spec == InferenceService.parse(body("c", maxReplicas=9)).spec
    assert third.spec.scaling is not one.spec.scaling
    assert third.spec.scaling.scale_up is one.spec.scaling.scale_up
    assert third.spec.slo is one.spec.slo


def test_cache_stores_equal_specs_once() -> None:
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    for name in ("a", "b"):
        cache.saw(body(name))
    one, other = cache.get("uid-a"), cache.get("uid-b")
    assert one is not None
    assert other is not None
    assert one["spec"] is other["spec"]
    assert one["spec"] == body("a")["spec"]
    newer = body("a") | {"status": {"replicas": 3, "conditions": [{"type": "Ready"}]}}
    newer["metadata"]["resourceVersion"] = "2"
    cache.saw(newer)
    seen = cache.get("uid-a")
    assert seen is not None
    assert seen["spec"] is one["spec"]
    assert seen["status"] == newer["status"]
    assert "managedFields" not in seen["metadata"]
    assert "managedFields" in newer["metadata"]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


def test_deeply_nested_spec_is_cut_where_everything_behind_recurses() -> None:
    assert Interner().json(nested(DEEPEST // 2)) == nested(DEEPEST // 2)
    kept, depth = Interner().json(nested(400)), 0
    while kept != TOO_DEEP:
        kept, depth = (kept["a"] if isinstance(kept, dict) else kept[0]), depth + 1
    assert depth == DEEPEST
