"""Two operators on one cluster, on virtual time: one decides and writes, then the other."""

from __future__ import annotations

import asyncio

import pytest

from headroom.controller.leadership import Term
from headroom.errors import Forbidden, Unavailable
from leadership.duel import Duel, duel
from support.controller_world import REPLICA_RPS


def test_one_decides_and_the_other_knows_and_writes_nothing() -> None:
    async def scenario(world: Duel) -> None:
        await world.begin()
        assert world.one.decided >= 13
        assert world.other.decided == 0
        assert world.other.api.writes == []
        assert len(world.other.controller.cache) == 1
        assert world.lease()["holderIdentity"] == "one"
        assert (world.one.observed.led_last, world.other.observed.led_last) == (True, False)

    duel(scenario)


@pytest.mark.parametrize(
    ("ending", "within_s"), [("end", 2.5), ("die", 14.5)], ids=["SIGTERM", "SIGKILL"]
)
def test_the_other_takes_over_and_nothing_is_scaled_by_it(ending: str, within_s: float) -> None:
    async def scenario(world: Duel) -> None:
        await world.begin()
        world.pods.arrivals_rps["resnet"] = 3 * REPLICA_RPS
        await asyncio.sleep(60.0)
        replicas, writes = world.replicas(), list(world.cluster.scale_writes)
        assert replicas >= 3
        await getattr(world.one, ending)()
        await asyncio.sleep(within_s)
        assert world.other.decided >= 1
        assert world.lease()["leaseTransitions"] == 1
        assert world.one.recorder.gone[-1] == "default/resnet", "its figures go with it"
        await asyncio.sleep(60.0)
        assert world.replicas() == replicas
        assert world.cluster.scale_writes == writes

    duel(scenario)


def test_a_leader_without_answers_stops_before_another_begins() -> None:
    async def scenario(world: Duel) -> None:
        await world.begin()
        world.one.api.hangs = True
        decided, writes = world.one.decided, len(world.one.api.writes)
        await asyncio.sleep(9.0)
        assert not world.one.election.leading
        assert not world.other.election.leading, "it may not be taken for four seconds more"
        await asyncio.sleep(6.0)
        assert world.other.decided >= 1
        world.one.api.hangs = False
        await asyncio.sleep(30.0)
        assert world.one.election.holder == "other"
        assert world.one.decided <= decided + 1
        assert len(world.one.api.writes) == writes

    duel(scenario)


@pytest.mark.parametrize("answers_after_s", [2.5, 3.7])
def test_slow_answers_still_make_a_leader_that_scales(answers_after_s: float) -> None:
    async def scenario(world: Duel) -> None:
        for operator in (world.one, world.other):
            operator.api.answers_after_s = answers_after_s
        await world.begin()
        world.pods.arrivals_rps["resnet"] = 3 * REPLICA_RPS
        await asyncio.sleep(90.0)
        assert world.replicas() >= 3
        assert world.lease()["leaseTransitions"] == 0
        await world.one.die()
        await asyncio.sleep(14.5 + 4 * answers_after_s)
        assert world.other.election.leading

    duel(scenario)


def test_an_outage_without_another_leader_keeps_the_state() -> None:
    async def scenario(world: Duel) -> None:
        await world.begin()
        world.pods.arrivals_rps["resnet"] = 2 * REPLICA_RPS
        await asyncio.sleep(60.0)
        for operator in (world.one, world.other):
            operator.api.broken = Unavailable("503")
        await asyncio.sleep(40.0)
        assert not world.one.election.leading
        assert world.one.election.complaint == "503"
        world.other.api.broken = None
        world.one.api.broken = None
        transitions = world.lease()["leaseTransitions"]
        leader = world.one
        await asyncio.sleep(9.0)
        if not leader.election.leading:
            leader, transitions = world.other, transitions + 1
        assert world.lease()["leaseTransitions"] == transitions
        assert leader.decided >= 1
        assert leader.election.complaint == ""

    duel(scenario)


def test_the_same_leader_goes_on_with_what_it_remembers() -> None:
    async def scenario(world: Duel) -> None:
        await world.begin()
        await world.other.die()
        world.pods.arrivals_rps["resnet"] = 2 * REPLICA_RPS
        await asyncio.sleep(60.0)
        world.one.api.broken = Unavailable("503")
        await asyncio.sleep(11.0)
        assert not world.one.election.leading
        world.one.api.broken = None
        decided = world.one.decided
        await asyncio.sleep(9.0)
        assert world.one.decided > decided, "2 ticks and 5 s"
        signals = world.one.recorder.decisions[decided].signals
        assert signals.arrival_rps.value is not None, "a new process would know no rate yet"

    duel(scenario)


def test_a_lease_that_may_not_be_written_makes_no_leader_and_is_reported() -> None:
    async def scenario(world: Duel) -> None:
        world.cluster.fail("create", "Lease", Forbidden("leases is forbidden"), times=1000)
        world.one.begin()
        await asyncio.sleep(60.0)
        assert world.one.decided == 0
        assert world.one.election.complaint == "leases is forbidden"
        tried = [call for call in world.cluster.calls if call == ("create", "Lease")]
        assert len(tried) <= 31, "not more often than it would look otherwise"
        world.other.begin()

    duel(scenario)


def test_work_that_fails_ends_the_candidacy_and_frees_the_lease() -> None:
    async def scenario(world: Duel) -> None:
        async def work(_: Term) -> None:
            await asyncio.sleep(5.0)
            raise ZeroDivisionError("a defect")

        with pytest.raises(ZeroDivisionError):
            await world.one.election.run(work)
        assert world.lease()["holderIdentity"] == ""
        world.one.begin()
        world.other.begin()

    duel(scenario)
