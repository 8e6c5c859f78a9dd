"""The gateways' ports: a namespace has a share, and a condition says when it is used up."""

from __future__ import annotations

from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.resources import endpoint_slice
from support.fakes_routing import RoutedWorld, becomes, play
from support.service_world import body, service


def _create(world: RoutedWorld, name: str, namespace: str) -> None:
    named = {"metadata__name": name, "metadata__namespace": namespace, "metadata__uid": name}
    world.see(body(**named, spec__routing={"mode": "Gateway"}))


def _status(world: RoutedWorld, name: str, namespace: str) -> RouteStatus:
    named = {"metadata__name": name, "metadata__namespace": namespace, "metadata__uid": name}
    return world.router.route_status(service(**named))


def test_namespace_with_all_its_ports_leaves_the_others_theirs() -> None:
    async def scenario(world: RoutedWorld) -> None:
        world.router.ports_per_namespace = 2
        world.lead()
        for number in range(3):
            _create(world, f"greedy-{number}", "greedy")
        _create(world, "modest", "modest")
        await becomes(lambda: len(world.router.refused) == 1)
        (refused,) = world.router.refused
        assert refused.startswith("greedy-")
        assert "all 2 ports" in _status(world, refused, "greedy").refused
        assert not _status(world, "modest", "modest").refused

        world.cache.forget(next(f"greedy-{n}" for n in range(3) if f"greedy-{n}" != refused))
        world.router.changed()
        await becomes(lambda: not world.router.refused)

    play(RoutedWorld, scenario)


def test_restarted_operator_gives_no_port_to_a_forged_slice() -> None:
    async def scenario(world: RoutedWorld) -> None:
        forged = service(metadata__name="thief", metadata__namespace="a", metadata__uid="thief")
        world.cluster.put(endpoint_slice.build(forged, ["10.0.0.66"], 20_123))
        _create(world, "modest", "modest")
        world.lead()
        await becomes(lambda: world.published.hosts("modest/modest") is not None)
        assert _status(world, "thief", "a").gateways == ()

    play(RoutedWorld, scenario)
