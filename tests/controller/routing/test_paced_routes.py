"""A namespace that changes its services takes neither the event loop nor the gateways' memory."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from headroom.controller.routing.gateway_room import (
    LEAVES_WITHIN_S,
    MOST_BYTES,
    NAMESPACE_BYTES,
)
from headroom.controller.routing.paced_routes import (
    CHANGED_BYTES,
    LEFT_OUT,
    REMEMBERED_S,
    PacedRoutes,
)
from headroom.controller.routing.paced_routes import PublishedRoutes as Published
from headroom.gateway import Endpoint, Route, snapshot
from headroom.gateway.built_routes import BuiltEndpoints, BuiltRoute, Resource, build
from support.fakes_gateway import route
from support.fakes_routing import PublishedRoutes, RoutedWorld, becomes, play
from support.service_world import body

MIB = 1 << 20
USUAL, LARGEST = 12_000, 210_000
"""Bytes of a service's configuration."""


def changed(one: Route, number: int) -> Route:
    return replace(one, timeout_s=100.0 + number)


def nothing(_: str) -> bool:
    return False


def of_size(size_of: Callable[[Route], int]) -> Callable[[Route], BuiltRoute]:
    """Build routes of a size."""

    def build(one: Route) -> BuiltRoute:
        return BuiltRoute(one, {one.key: Resource("", bytes(size_of(one)))}, {})

    return build


def begun(*routes: Route, size: int) -> PacedRoutes:
    """Return what has published these routes."""
    paced = PacedRoutes(of_size(lambda _: size))
    assert paced.publish(routes, nothing, 0.0).routes == [*routes]
    return paced


def test_namespace_that_changes_its_service_all_the_time_leaves_others_room() -> None:
    evil, good = route(namespace="evil"), route(namespace="good")
    paced = begun(evil, good, size=MIB // 8)
    published, late = 0, 0
    for step in range(1200):
        now_s = 1.0 + step / 20
        wanted = changed(evil, step)
        mine = changed(good, step // 200)
        found = paced.publish([wanted, mine], nothing, now_s)
        published += wanted in found.routes
        late += mine not in found.routes
    assert late == 0
    rounds = 1200 / 20 / REMEMBERED_S
    assert published * MIB // 8 <= (rounds + 1) * CHANGED_BYTES / 2


def test_change_that_was_too_many_follows_when_earlier_ones_are_gone() -> None:
    one = route()
    paced = begun(one, size=CHANGED_BYTES // 2)
    assert paced.publish([changed(one, 1)], nothing, 1.0).routes == [changed(one, 1)]
    assert paced.publish([changed(one, 2)], nothing, 2.0).routes == [changed(one, 1)]
    follows_s = 1.0 + REMEMBERED_S
    assert paced.publish([changed(one, 3)], nothing, follows_s).routes == [changed(one, 3)]


def test_new_service_of_a_namespace_that_changed_much_is_late_and_kept_as_it_is() -> None:
    """The gateways may have it from an operator before, whose namespace is read only now."""
    first, second = route(name="first"), route(name="second")
    paced = begun(size=CHANGED_BYTES // 2)
    found = paced.publish([first, second], nothing, 1.0)
    assert (found.routes, found.late, found.left_out) == ([first], [second.key], {})
    found = paced.publish([first, second], nothing, 1.0 + REMEMBERED_S)
    assert (found.routes, found.late) == ([first, second], [])


def test_all_that_is_there_at_the_beginning_is_published_at_once() -> None:
    many = [route(name=f"m{number}") for number in range(100)]
    begun(*many, size=MIB // 8)


def test_services_beyond_the_room_of_their_namespace_are_left_out_and_others_not() -> None:
    evil = [route(namespace="evil", name=f"e{number}") for number in range(20)]
    good = route(namespace="good")
    paced = PacedRoutes(of_size(lambda _: MIB))
    found = paced.publish([*evil, good], nothing, 0.0)
    most = NAMESPACE_BYTES // MIB
    assert found.routes == [*evil[:most], good]
    assert found.left_out == {one.key: LEFT_OUT for one in evil[most:]}
    found = paced.publish([*evil[4:], good], nothing, 1.0)
    assert found.left_out == {}


def attackers(count: int) -> list[Route]:
    """Services of namespaces that each want more than one namespace may have."""
    names = [(f"evil-{number}", f"e{one}") for number in range(count) for one in range(80)]
    return [route(namespace=namespace, name=name) for namespace, name in names]


def of_attackers(one: Route) -> int:
    return LARGEST if one.namespace.startswith("evil") else USUAL


def settled(paced: PacedRoutes, routes: Sequence[Route], in_use: Collection[str] = ()) -> Published:
    """Publish so often that nothing changes any more."""
    for step in range(60):
        found = paced.publish(routes, nothing, 30.0 * step, in_use)
    assert paced.publish(routes, nothing, 1800.0, in_use).routes == found.routes
    return found


@pytest.mark.parametrize("count", [1, 2, 4, 10, 40])
def test_namespace_that_comes_later_gets_its_equal_share_of_what_others_have_filled(
    count: int,
) -> None:
    """Ten that came before left it room for one usual service, and twelve for none."""
    evil, paced = attackers(count), PacedRoutes(of_size(of_attackers))
    paced.publish(evil, nothing, 0.0)
    good = [route(namespace="good", name=f"g{number}") for number in range(30)]
    found = settled(paced, [*evil, *good])
    published = Counter(one.namespace for one in found.routes)
    assert published["good"] == 30
    least = min(MOST_BYTES // (count + 1), NAMESPACE_BYTES) // LARGEST - 1
    assert min(published[f"evil-{number}"] for number in range(count)) >= least
    assert sum(of_attackers(one) for one in found.routes) <= MOST_BYTES


def crowded() -> tuple[PacedRoutes, list[Route], list[str]]:
    """Return two namespaces that hold all there is, and the keys of their services."""
    many = [route(namespace=f"n{n}", name=f"s{one}") for n in range(2) for one in range(16)]
    paced = PacedRoutes(of_size(lambda one: MIB * 3 // 2 if one.namespace == "good" else MIB))
    held = [one.key for one in many]
    assert paced.publish(many, nothing, 0.0, held).routes == many
    return paced, many, held


def test_service_gives_way_only_when_no_client_is_led_to_it() -> None:
    paced, many, held = crowded()
    large = route(namespace="good")
    wanted = [*many, large]
    for now_s in (100.0, 110.0, 120.0):
        found = paced.publish(wanted, nothing, now_s, held)
        assert {one.key for one in found.routes} == {*held}, "clients use them"
        leaving = {*held}.intersection(found.direct)
        assert leaving == {"n0/s15", "n1/s15"}, "no more than is needed"
        assert {found.left_out[key] for key in (*leaving, large.key)} == {LEFT_OUT}
    unused = [key for key in held if key not in leaving]
    found = paced.publish(wanted, nothing, 130.0, unused)
    assert [one.key for one in found.routes] == [*unused, large.key]


def test_service_without_a_replica_gives_way_after_a_while() -> None:
    paced, many, held = crowded()
    large = route(namespace="good")
    paced.publish([*many, large], nothing, 100.0, held)
    found = paced.publish([*many, large], nothing, 100.0 + LEAVES_WITHIN_S, held)
    assert large in found.routes


@pytest.mark.parametrize("count", [2, 12])
def test_operator_that_begins_goes_on_with_what_clients_use(count: int) -> None:
    """Whatever the order of its list: else their gateway stops listening under them."""
    evil = attackers(count)
    found = settled(PacedRoutes(of_size(of_attackers)), evil)
    held = {one.key for one in found.routes}
    second = PacedRoutes(of_size(of_attackers))
    for now_s in (0.0, 30.0):
        found = second.publish(evil[::-1], nothing, now_s, held)
        assert {one.key for one in found.routes} >= held
        assert not held.intersection(found.direct)


def test_service_may_become_smaller_where_others_have_taken_what_was_free() -> None:
    names = [(f"n{number}", f"s{one}") for number in range(3) for one in range(16)]
    many = [route(namespace=namespace, name=name) for namespace, name in names]
    smaller, larger = changed(many[0], 1), changed(many[1], 2)
    sizes = {smaller: MIB // 2, larger: 2 * MIB}
    paced = PacedRoutes(of_size(lambda one: sizes.get(one, MIB)))
    paced.publish(many, nothing, 0.0)
    in_use = [one.key for one in many]
    found = paced.publish([smaller, larger, *many[2:]], nothing, 1.0, in_use)
    assert found.routes[:2] == [smaller, many[1]]
    assert larger.key in found.left_out
    assert smaller.key not in found.left_out


def test_namespace_without_room_is_built_no_further_than_the_first_that_has_none() -> None:
    """A thousand of the largest took 10 s of the event loop and 200 MB."""
    evil = [route(namespace="evil", name=f"e{number}") for number in range(1000)]
    good = [route(namespace="good", name=f"g{number}") for number in range(5)]
    made: list[Route] = []

    def counted(one: Route) -> BuiltRoute:
        made.append(one)
        return of_size(lambda _: MIB)(one)

    paced = PacedRoutes(counted)
    most = NAMESPACE_BYTES // MIB
    for now_s in (0.0, 100.0, 200.0):
        found = paced.publish([*evil, *good], nothing, now_s)
        assert found.routes == [*evil[:most], *good]
        assert set(found.left_out) == {one.key for one in evil[most:]}
        assert made == [*evil[: most + 1], *good]


def test_new_services_of_a_namespace_without_a_turn_are_not_built() -> None:
    made: list[Route] = []

    def counted(one: Route) -> BuiltRoute:
        made.append(one)
        return of_size(lambda _: CHANGED_BYTES // 2)(one)

    paced = PacedRoutes(counted)
    paced.publish([], nothing, 0.0)
    new = [route(name=f"n{number}") for number in range(100)]
    for now_s in (1.0, 2.0, 3.0):
        assert paced.publish(new, nothing, now_s).routes == new[:1]
        assert made == new[:2]


def test_earlier_versions_of_a_service_are_not_kept() -> None:
    """Each took 190 kB of the operator: edited every 2 s, half an hour took all of its memory."""
    one, paced, assigned = route(name="edited"), PacedRoutes(build), BuiltEndpoints()
    several = [Endpoint("10.0.0.1", number) for number in range(1, 9)]
    for step in range(100):
        found = paced.publish([changed(one, step)], nothing, 100.0 * step)
        hosts = {one.key: [each for each in several if step & each.port or each.port == 8]}
        snapshot(found.built, hosts, {}, assigned=assigned)
    del found
    gc.collect()
    versions = [each for each in gc.get_objects() if type(each) is BuiltRoute]
    assert len([each for each in versions if each.route.key == one.key]) == 1
    bodies = [each.body for each in gc.get_objects() if type(each) is Resource]
    of_it = [each for each in bodies if one.key.encode() in each and b"LoadAssignment" in each]
    assert len(of_it) == 1


def test_route_that_is_not_known_now_keeps_its_place() -> None:
    one = route()
    paced = begun(one, size=MIB)
    assert paced.publish([], lambda key: key == one.key, 1.0).routes == []
    assert paced.publish([one], nothing, 2.0).routes == [one]


class Versions(PublishedRoutes):
    """Counts the published versions of each listener."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, str]] = set()

    def publish(self, what: object, kept: object = ()) -> None:
        super().publish(what, kept)  # type: ignore[arg-type]
        if self.snapshot is not None:
            listeners = self.snapshot.resources["listeners"]
            self.seen |= {(name, one.version) for name, one in listeners.items()}


def test_service_that_is_edited_twenty_times_a_second_is_published_by_its_share() -> None:
    async def scenario(world: RoutedWorld) -> None:
        world.router.publisher = versions = Versions()
        classes = [{"name": f"c{number}", "priority": number} for number in range(8)]
        models = [{"model": f"model-{number}", "service": "edited"} for number in range(16)]

        def edited(number: int) -> dict[str, object]:
            return body(
                metadata__name="edited",
                metadata__namespace="evil",
                metadata__uid="edited",
                metadata__generation=number,
                metadata__resourceVersion=str(number),
                spec__routing={
                    "mode": "Gateway",
                    "classes": classes,
                    "models": models,
                    "trustedCIDRs": ["10.0.0.0/8"],
                    "requestTimeout": f"{number}s",
                },
            )

        world.see(edited(1))
        world.see(body(spec__routing={"mode": "Gateway"}))
        world.lead()
        await becomes(lambda: versions.hosts("vision/resnet50") == [])
        for number in range(2, 202):
            world.see(edited(number))
            await asyncio.sleep(0.05)
        published = len([name for name, _ in versions.seen if name == "evil/edited"])
        assert 2 < published < 40, "of 200 edits"

    play(RoutedWorld, scenario)
