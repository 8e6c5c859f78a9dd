"""Work of an operator between two idle states; each step may be interrupted anywhere."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from reliability.testbed.admin import Object
from reliability.testbed.exporter import REPLICA_RPS
from reliability.testbed.world import DEPLOYMENTS, World

_Part = Callable[[World], Awaitable[None]]
_End = Callable[[World], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`prepare` ends in a quiet state, `act` disturbs it, `ended` knows the state that follows."""

    name: str
    prepare: _Part
    act: _Part
    ended: _End
    only: frozenset[str] = frozenset()
    """Writes to crash at, as text; empty: all of them."""

    def explores(self, words: str) -> bool:
        """Return whether to crash at a write of this kind."""
        return not self.only or words in self.only


async def _nothing(one: World) -> None:
    """The operator runs, and there is no service."""


async def _one_serves(one: World) -> None:
    await one.apply()
    await one.wait("serves", lambda: one.serves(1))


async def _one_is_measured(one: World) -> None:
    await _one_serves(one)
    one.load(0.5 * REPLICA_RPS)
    await one.wait("measured", lambda: _holds(one, "MetricsAvailable"))


async def _one_of_two_is_measured(one: World) -> None:
    await one.apply(scaling={"maxReplicas": 2})
    await one.wait("serves", lambda: one.serves(1))
    one.load(0.5 * REPLICA_RPS)
    await one.wait("measured", lambda: _holds(one, "MetricsAvailable"))


async def _two_are_needed(one: World) -> None:
    await _one_is_measured(one)
    one.load(1.6 * REPLICA_RPS)
    await one.wait("two serve", lambda: one.serves(2))
    await one.wait("measured", lambda: _holds(one, "MetricsAvailable"))


async def _create(one: World) -> None:
    await one.apply()


async def _raise_floor(one: World) -> None:
    await one.apply(scaling={"minReplicas": 3})


async def _load_rises(one: World) -> None:
    """One step follows, all that the bounds allow, however little of it the first look sees."""
    one.load(30.0 * REPLICA_RPS)


async def _load_falls(one: World) -> None:
    one.load(0.2 * REPLICA_RPS)


async def _new_template(one: World) -> None:
    await one.apply(runtime={"env": [{"name": "CHANGED", "value": "yes"}]})


async def _delete_children(one: World) -> None:
    deployment = f"{DEPLOYMENTS.format(one.namespace)}/resnet"
    pdb = f"/apis/policy/v1/namespaces/{one.namespace}/poddisruptionbudgets/resnet"
    for path in (f"/api/v1/namespaces/{one.namespace}/services/resnet", pdb, deployment):
        await one.admin.delete(path)


async def _make_again(one: World) -> None:
    before = (await one.service())["metadata"]["uid"]
    await one.delete_service()
    await one.wait("gone", lambda: _is_gone(one))
    await one.apply(scaling={"minReplicas": 2})
    assert (await one.service())["metadata"]["uid"] != before


async def _is_gone(one: World) -> bool:
    return not await one.service() and not await one.deployment()


async def _holds(one: World, kind: str) -> bool:
    return (await one.condition(kind))[0] == "True"


async def _settled(one: World, replicas: int) -> bool:
    """Serves, says so, has all children, and what was created was handed over."""
    if not await one.serves(replicas) or not await _holds(one, "Ready"):
        return False
    paths = (
        f"/api/v1/namespaces/{one.namespace}/services/resnet",
        f"/apis/policy/v1/namespaces/{one.namespace}/poddisruptionbudgets/resnet",
        f"/api/v1/namespaces/{one.namespace}/serviceaccounts/resnet",
    )
    deployment = await one.deployment()
    owner = (await one.service())["metadata"]["uid"]
    children = [await one.admin.find(path) for path in paths]
    return _is_handed_over(deployment) and all(
        child is not None and _is_owned(child, owner) for child in (*children, deployment)
    )


def _is_owned(child: Object, uid: str) -> bool:
    return any(one["uid"] == uid for one in child["metadata"].get("ownerReferences", ()))


def _is_handed_over(deployment: Object) -> bool:
    entries = deployment["metadata"].get("managedFields", ())
    return any(one["manager"] == "headroom" and one["operation"] == "Apply" for one in entries)


def _ends_with(replicas: int) -> _End:
    async def ended(one: World) -> bool:
        return await _settled(one, replicas)

    return ended


async def _template_is_out(one: World) -> bool:
    deployment = await one.deployment()
    status = deployment.get("status", {})
    return (
        "CHANGED" in json.dumps(deployment["spec"]["template"])
        and status.get("updatedReplicas") == status.get("replicas") == 1
        and await _settled(one, 1)
    )


async def _children_are_back(one: World) -> bool:
    """All are there, and none is on its way out."""
    deployment = await one.deployment()
    return (
        bool(deployment)
        and not deployment["metadata"].get("deletionTimestamp")
        and (await _settled(one, 1))
    )


def _scenario(name: str, prepare: _Part, act: _Part, ended: _End) -> Scenario:
    return Scenario(name=name, prepare=prepare, act=act, ended=ended)


SCENARIOS = (
    _scenario("create", _nothing, _create, _ends_with(1)),
    _scenario("floor-raised", _one_serves, _raise_floor, _ends_with(3)),
    _scenario("load-rises", _one_of_two_is_measured, _load_rises, _ends_with(2)),
    _scenario("load-falls", _two_are_needed, _load_falls, _ends_with(1)),
    _scenario("new-template", _one_serves, _new_template, _template_is_out),
    _scenario("children-deleted", _one_serves, _delete_children, _children_are_back),
    _scenario("made-again", _one_serves, _make_again, _ends_with(2)),
)

SHORT = (
    Scenario(
        name="create",
        prepare=_nothing,
        act=_create,
        ended=_ends_with(1),
        only=frozenset({"create deployments"}),
    ),
    Scenario(
        name="floor-raised",
        prepare=_one_serves,
        act=_raise_floor,
        ended=_ends_with(3),
        only=frozenset({"patch deployments/scale"}),
    ),
)
"""The writes that matter most, for every run of the tests."""
