"""Cost of a tenant's specs for the others: their size, and how often they change."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from headroom.api import InferenceService
from headroom.api.invalid_spec import InvalidSpec
from headroom.api.template_size import LEFT_OUT, MOST_VALUES
from headroom.controller.services.service_cache import ServiceCache
from support.controller_world import World, play
from support.service_world import body


def template(values: int) -> dict[str, Any]:
    """Return a pod template of this many values: itself, its spec, a list, and what is in it."""
    return {"spec": {"unknown": [{} for _ in range(values - 3)]}}


@pytest.mark.parametrize(("values", "is_kept"), [(MOST_VALUES, True), (MOST_VALUES + 1, False)])
def test_pod_template_of_too_many_values_is_refused_and_not_looked_at(
    values: int, is_kept: bool
) -> None:
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    given = body(spec__runtime__podTemplate=template(values))
    for stored in (given, self_of(cache, given)):
        if is_kept:
            assert InferenceService.parse(stored).spec.runtime.pod_template.overlay()
            continue
        with pytest.raises(InvalidSpec, match=f"podTemplate.*at most {MOST_VALUES} values"):
            InferenceService.parse(stored)
    kept = self_of(cache, given)["spec"]["runtime"]["podTemplate"]
    assert kept == (given["spec"]["runtime"]["podTemplate"] if is_kept else LEFT_OUT)


def self_of(cache: ServiceCache, given: dict[str, Any]) -> Any:
    """Return an object as the cache has it."""
    cache.saw(given)
    return cache.get(given["metadata"]["uid"])


def test_service_with_a_huge_template_says_so_and_is_scaled_again_once_it_is_small() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(30.0)
        world.edit(runtime={"podTemplate": template(100_000)})
        await world.run_for(10.0)
        assert world.condition("Ready") == ("False", "InvalidSpec")
        assert f"at most {MOST_VALUES} values" in world.message("Ready")
        world.edit()
        await world.run_for(30.0)
        assert world.condition("Ready")[0] == "True"

    play(scenario)


def test_changes_of_one_namespace_leave_the_loop_to_others_and_the_last_one_counts() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(10.0)
        saw, seen = world.controller.cache.saw, itertools.count()

        def counted(service: Any) -> None:
            next(seen)
            saw(service)

        world.controller.cache.saw = counted  # type: ignore[method-assign]
        for number in range(200):
            large = template(MOST_VALUES - 2)
            large["spec"]["nodeSelector"] = {"change": str(number)}
            world.edit(runtime={"podTemplate": large})
        assert next(seen) < 100
        await asyncio.sleep(15.0)
        deployment = world.cluster.find("Deployment", "resnet")
        assert deployment is not None
        assert deployment["spec"]["template"]["spec"]["nodeSelector"] == {"change": "199"}

    play(scenario)
