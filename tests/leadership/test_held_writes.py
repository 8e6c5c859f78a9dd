"""Writes beyond a lease: none; and those based on an ex-leader's reads are refused."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headroom.controller.leadership import LeasedCluster
from headroom.errors import Conflict, NotLeading
from leadership.duel import Connection, Duel, duel
from support.cluster_world import Manifest


class Held:
    """A lease that is renewed only by `renew`."""

    def __init__(self, left_s: float) -> None:
        self.renew(left_s)

    def renew(self, left_s: float) -> None:
        self._until_s = asyncio.get_running_loop().time() + left_s

    def remaining_s(self) -> float:
        return self._until_s - asyncio.get_running_loop().time()


def writes(cluster: LeasedCluster, one: Manifest) -> list[Callable[[], Awaitable[Any]]]:
    return [
        lambda: cluster.create(one, field_manager="m"),
        lambda: cluster.apply(one, field_manager="m"),
        lambda: cluster.apply_status(one, field_manager="m"),
        lambda: cluster.apply_scale(one, 3, field_manager="m"),
        lambda: cluster.json_patch(one, [], field_manager="m"),
    ]


@pytest.mark.parametrize("left_s", [0.0, 3.0], ids=["too old", "runs out while it is written"])
def test_nothing_is_written_without_the_lease_or_beyond_it(left_s: float) -> None:
    async def scenario(world: Duel) -> None:
        await world.begin()
        connection = Connection(world.cluster)
        lease = Held(left_s)
        guarded = LeasedCluster(connection, lease)
        assert await guarded.list_all("v1", "Pod", None)
        deployment = await guarded.get("apps/v1", "Deployment", "default", "resnet")
        connection.hangs = True
        for write in writes(guarded, deployment):
            lease.renew(left_s)
            begun_s = asyncio.get_running_loop().time()
            with pytest.raises(NotLeading):
                await write()
            assert asyncio.get_running_loop().time() - begun_s == pytest.approx(left_s, abs=0.01)
        assert connection.writes == []

    duel(scenario)


def test_a_write_goes_on_as_long_as_the_lease_is_renewed_meanwhile() -> None:
    async def scenario(world: Duel) -> None:
        await world.begin()
        connection, lease = Connection(world.cluster), Held(60.0)
        guarded = LeasedCluster(connection, lease)
        deployment = await guarded.get("apps/v1", "Deployment", "default", "resnet")
        connection.answers_after_s = 4.0
        loop = asyncio.get_running_loop()
        for renewed_s in (0.0, 1.0, 2.0):
            loop.call_later(renewed_s, lease.renew, 2.5)
        assert await guarded.apply_scale(deployment, 3, field_manager="m")
        deployment = await guarded.get("apps/v1", "Deployment", "default", "resnet")
        lease.renew(1.0)
        loop.call_later(0.5, lease.renew, 1.5)
        begun_s = loop.time()
        with pytest.raises(NotLeading):
            await guarded.apply_scale(deployment, 4, field_manager="m")
        assert loop.time() - begun_s == pytest.approx(2.0, abs=0.01)

    duel(scenario)


def test_what_an_ex_leader_had_read_is_refused_after_the_first_write_of_the_next() -> None:
    """Whatever slept between the look at the lease and the sending."""

    async def scenario(world: Duel) -> None:
        await world.begin()
        stale = {kind: copy.deepcopy(world.cluster.find(kind, "resnet")) for kind in CHILDREN}
        await world.one.die()
        await asyncio.sleep(20.0)
        assert world.other.decided >= 1
        status = stale["InferenceService"]
        assert status is not None
        with pytest.raises(Conflict):
            await world.cluster.apply_status(status, field_manager="headroom")

    duel(scenario)


CHILDREN = ("InferenceService", "Deployment")
