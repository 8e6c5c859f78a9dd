"""Prefill and decode pools that name each other, or others; each on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.sharing.caps import Caps
from headroom.controller.sharing.pair_share import PairNeeds, own_room
from support.controller_world import REPLICA_RPS, World, play

PREFILL: dict[str, Any] = {"latency": {"target": "1.5s"}, "timeToFirstToken": {"target": "2s"}}
DECODE: dict[str, Any] = {"latency": {"target": "1.5s"}, "timePerOutputToken": {"target": "50ms"}}
QUICK: dict[str, Any] = {"scaleDown": {"stabilizationWindow": "40s"}}


def _decode(world: World, name: str = "decode", prefill: str = "prefill") -> None:
    world.create(name, slo=DECODE, scaling=QUICK, prefillRef={"name": prefill})


def _load(world: World, **replicas: float) -> None:
    for name, number in replicas.items():
        world.pods.arrivals_rps[name] = number * REPLICA_RPS


def test_pools_of_a_pair_show_each_other() -> None:
    async def scenario(world: World) -> None:
        world.create("prefill", slo=PREFILL)
        _decode(world)
        _load(world, prefill=1.5, decode=1.5)
        await world.run_for(300.0)
        for name, other, role in (
            ("decode", "prefill", "Prefill"),
            ("prefill", "decode", "Decode"),
        ):
            shown = world.status(name)["partner"]
            assert (shown["name"], shown["role"]) == (other, role)
            assert shown["arrivalsPerSecond"] == pytest.approx(1.5 * REPLICA_RPS, rel=0.1)
            assert shown["replicas"] == world.replicas(other)
            assert world.condition("PartnerSeen", name) == ("True", "PartnerSeen")
        assert world.status("decode")["partner"]["passedShare"] == pytest.approx(1.0, rel=0.1)
        assert "passedShare" not in world.status("prefill")["partner"]

    play(scenario)


def test_partner_that_is_missing_is_named_and_no_replica_is_removed() -> None:
    async def scenario(world: World) -> None:
        _decode(world)
        _load(world, decode=3.5)
        await world.run_for(120.0)
        before = world.replicas("decode")
        assert before >= 4
        _load(world, decode=0.5)
        await world.run_for(900.0)
        assert world.replicas("decode") == before
        assert world.condition("PartnerSeen", "decode") == ("False", "PartnerNotFound")
        assert world.message("PartnerSeen", "decode").endswith(
            "; apply it, or correct or remove spec.prefillRef"
        )
        decision = world.status("decode")["decision"]
        assert "the prefill pool prefill is not seen (it does not exist)" in decision["message"]

    play(scenario)


def test_partner_that_cannot_be_read_is_named() -> None:
    async def scenario(world: World) -> None:
        world.create("prefill", slo=PREFILL)
        _decode(world)
        _load(world, prefill=1.5, decode=1.5)
        await world.run_for(120.0)
        world.pods.silent = True
        await world.run_for(60.0)
        assert world.condition("PartnerSeen", "decode") == ("Unknown", "PartnerNotSeen")
        assert "not fresh" in world.status("decode")["partner"]["heldFor"]

    play(scenario)


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"prefill": {"slo": DECODE, "prefillRef": {"name": "decode"}}}, "names a prefill pool"),
        ({"prefill": {}}, "promises neither"),
        (
            {
                "prefill": {"slo": PREFILL},
                "another": {"slo": DECODE, "prefillRef": {"name": "prefill"}},
            },
            "it is the prefill pool of another already",
        ),
    ],
    ids=["circle", "not generating", "taken"],
)
def test_service_that_is_no_prefill_pool_is_named(others: dict[str, Any], why: str) -> None:
    async def scenario(world: World) -> None:
        for name, changes in others.items():
            world.create(name, **changes)
            await world.run_for(10.0)
        _decode(world)
        await world.run_for(30.0)
        assert world.condition("PartnerSeen", "decode") == ("False", "PartnerUnsuitable")
        assert why in world.message("PartnerSeen", "decode")

    play(scenario)


def test_pools_are_uncoupled_when_the_reference_is_removed() -> None:
    async def scenario(world: World) -> None:
        world.create("prefill", slo=PREFILL)
        _decode(world)
        await world.run_for(60.0)
        assert "partner" in world.status("prefill")
        world.edit("decode", slo=DECODE)
        await world.run_for(120.0)
        for name in ("prefill", "decode"):
            assert "partner" not in world.status(name)
            assert world.condition("PartnerSeen", name) == ("True", "NoPartner")

    play(scenario)


@pytest.mark.parametrize(
    ("needed", "of_partner", "replicas"),
    [((2, 2), 2, 4), ((6, 2), 2, 6), ((6, 6), 2, 4), ((6, 12), 2, 3), ((2, 6), 6, 2)],
    ids=["neither grows", "one grows", "both grow", "unequally", "full"],
)
def test_accelerators_of_a_pair_are_divided_by_what_each_needs(
    needed: tuple[int, int], of_partner: int, replicas: int
) -> None:
    pair = PairNeeds(
        partner_uid="p",
        replicas=2,
        needed=needed[0],
        partner_replicas=of_partner,
        partner_needed=needed[1],
    )
    assert own_room(pair, 1, of_partner, 8) == replicas


@pytest.mark.parametrize("first", ["prefill", "decode"])
def test_pool_that_asks_first_leaves_the_other_its_share(first: str) -> None:
    async def scenario(world: World) -> None:
        world.caps = Caps(accelerators=8)
        await world.restart_operator()
        world.create("prefill", slo=PREFILL)
        _decode(world)
        _load(world, prefill=1.5, decode=1.5)
        await world.run_for(200.0)
        _load(world, **{"prefill": 1.5, "decode": 1.5, first: 8.0})
        await world.run_for(1.0)
        _load(world, prefill=8.0, decode=8.0)
        await world.run_for(120.0)
        assert {name: world.replicas(name) for name in ("prefill", "decode")} == {
            "prefill": 4,
            "decode": 4,
        }

    play(scenario)
