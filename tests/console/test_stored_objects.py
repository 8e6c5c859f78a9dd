"""Stored objects of any shape: none hides the list of the others (security review, A18)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.console.listing import Query, listing
from headroom.console.pages import overview
from headroom.console.read_model import ReadModel
from support.console_world import START_S, bystander

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def listed(spec: object, status: object) -> list[str]:
    """Return the names on the page of two good objects and one with this spec and status."""
    odd = bystander(1)
    odd |= {"spec": spec, "status": status}
    model = ReadModel(lambda: [bystander(0), odd, bystander(2)])
    entries = model.entries()
    assert overview.rendered(listing(entries, Query()), now_s=START_S)
    return sorted(one.summary.name for one in entries)


NAMES = listed({}, {})


@pytest.mark.parametrize("count", ["two", "1e999", -1, 1.5, [], {}, None, 10**400, float("nan")])
def test_count_of_accelerators_that_is_no_count_is_listed(count: object) -> None:
    spec = bystander(1)["spec"] | {"accelerator": {"type": "nvidia.com/gpu", "count": count}}
    assert listed(spec, bystander(1)["status"]) == NAMES


@given(JSON, JSON)
def test_object_of_any_shape_is_listed(spec: Any, status: Any) -> None:
    assert listed(spec, status) == NAMES


@given(st.data())
def test_object_with_one_odd_field_is_listed(data: st.DataObject) -> None:
    spec, status = bystander(1)["spec"], bystander(1)["status"]
    part = data.draw(st.sampled_from([spec, status]))
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(JSON)
    assert listed(spec, status) == NAMES
