"""The router keeps nothing of deleted services."""

from __future__ import annotations

import asyncio
import gc

from headroom.api import InferenceService
from support.fakes_routing import RoutedWorld, becomes
from support.service_world import body
from support.virtual_time import VirtualTimeLoop


def parsed() -> set[str]:
    """Return the names of the services that anything still holds."""
    gc.collect()
    held = (one for one in gc.get_objects() if type(one) is InferenceService)
    return {one.name for one in held if one.name.startswith("brief-")}


def test_deleted_services_are_not_kept() -> None:
    async def scenario() -> None:
        world = RoutedWorld()
        try:
            world.lead()
            for number in range(5):
                named = {"metadata__name": f"brief-{number}", "metadata__uid": f"brief-{number}"}
                world.see(body(**named, spec__routing={"mode": "Gateway"}))
            await becomes(lambda: len(parsed()) == 5)
            for number in range(5):
                world.cache.forget(f"brief-{number}")
            world.router.changed()
            await becomes(lambda: not parsed())
        finally:
            await world.end()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(scenario())
