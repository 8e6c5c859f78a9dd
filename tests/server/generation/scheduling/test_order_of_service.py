"""Order of service of tenants and priorities, and the forecast of it."""

from __future__ import annotations

import random

import pytest

from headroom_server.errors import QueueFullError
from headroom_server.generation.scheduling.admission.served_before import served_before
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import FinishReason
from support.generation_world import LIMITS, RequestRecord, World, request


def flooded(seats: int) -> World:
    """Return a world in which one tenant has all seats, and 400 requests that wait."""
    world = World(limits=LIMITS._replace(max_sequences=seats))
    world.arrive([request(key, 64, 400, tenant="loud") for key in range(1, 401)])
    world.run(until_s=10.0)
    assert world.scheduler.statistics.waiting_requests > 100
    return world


@pytest.mark.parametrize("seats", [4, 64])
def test_promise_to_a_tenant_is_not_refused_for_the_requests_of_another(seats: int) -> None:
    world = flooded(seats)
    start_s, promised_s = world.now_s, 0.5
    arrivals_s = [start_s + at for at in range(10)]
    quiet = [
        request(1000 + at, 64, 20, tenant="quiet", arrived_s=arrived_s,
                first_token_deadline_s=arrived_s + promised_s)
        for at, arrived_s in enumerate(arrivals_s)
    ]  # fmt: skip
    world.arrive(quiet)
    world.run(until_s=start_s + 15.0)
    records = [world.records[one.key] for one in quiet]
    assert [one.finish for one in records] == [FinishReason.LENGTH] * 10
    assert max(one.first_token_s for one in records) < promised_s


def test_promise_to_the_tenant_that_floods_is_refused() -> None:
    world = flooded(4)
    due_s = world.now_s + 0.5
    world.arrive([request(1000, 64, 20, tenant="loud", arrived_s=world.now_s,
                          first_token_deadline_s=due_s)])  # fmt: skip
    world.run(until_s=world.now_s + 1.0)
    assert world.records[1000].refused


@pytest.mark.parametrize("priority", [0, 4, 5])
def test_request_that_is_more_urgent_waits_no_longer(priority: int) -> None:
    """The other tenant's requests have waited for 10 s, which is worth ten levels of priority."""
    world = flooded(4)
    urgent = [
        request(1000 + at, 64, 20, tenant="quiet", arrived_s=world.now_s + at, priority=priority)
        for at in range(5)
    ]
    world.arrive(urgent)
    world.run(until_s=world.now_s + 8.0)
    assert max(world.records[one.key].first_token_s for one in urgent) < 0.2


def test_promises_are_kept_where_tenants_share_an_overloaded_device() -> None:
    """A tenant asks for twice what the device can serve, and four others for a tenth of it each."""
    chance, world = random.Random(3), World(limits=LIMITS._replace(max_sequences=16))
    arrived_s, asked = 0.0, []
    for key in range(1500):
        arrived_s += chance.expovariate(60.0)
        tenant = "loud" if chance.random() < 0.68 else f"t{chance.randrange(4)}"
        answer = 1 + int(chance.expovariate(0.01))
        asked.append(
            request(key, chance.randrange(20, 800), answer, tenant=tenant, arrived_s=arrived_s,
                    first_token_deadline_s=arrived_s + 1.0)
        )  # fmt: skip
    world.arrive(asked)
    world.run()
    accepted = [one for one in asked if not world.records[one.key].refused]
    missed = [one for one in accepted if world.records[one.key].finish is FinishReason.EXPIRED]
    quiet = [one for one in asked if one.tenant != "loud"]
    served = [one for one in quiet if world.records[one.key].finish is FinishReason.LENGTH]
    assert len(missed) < 0.08 * len(accepted)
    assert len(served) > 0.75 * len(quiet)


@pytest.mark.parametrize("promised_s", [None, 0.03])
def test_short_prompt_does_not_wait_for_the_long_ones_of_another_tenant(
    promised_s: float | None,
) -> None:
    """The long ones take 10 s; with a promised time per token they are not served apart."""
    options = SchedulingOptions(time_per_token_s=promised_s)
    world = World(limits=LIMITS._replace(blocks=65_536), options=options)
    world.arrive([request(-key, 100, 30, arrived_s=0.01 * key) for key in range(1, 400)])
    world.run()
    start_s = world.now_s
    world.arrive([request(key, 12_000, 100, tenant="loud", arrived_s=start_s + 0.01 * key)
                  for key in range(1, 45)])  # fmt: skip
    quiet = [request(1000 + at, 100, 20, tenant="quiet", arrived_s=start_s + 1.0 + 0.4 * at)
             for at in range(25)]  # fmt: skip
    world.arrive(quiet)
    world.run()
    assert max(world.records[one.key].first_token_s for one in quiet) < 0.2
    assert all(world.records[key].finish is FinishReason.LENGTH for key in range(1, 45))


@pytest.mark.parametrize(
    ("seats", "waiting", "answer"),
    [
        pytest.param(4, 12, 400, id="seats are short"),
        pytest.param(64, 600, 60, id="many short answers"),
        pytest.param(64, 30, 60, id="the queue is short"),
    ],
)
def test_refused_client_comes_back_when_the_queue_is_served(
    seats: int, waiting: int, answer: int
) -> None:
    world = World(
        limits=LIMITS._replace(max_sequences=seats),
        options=SchedulingOptions(max_waiting_requests=waiting),
    )
    for key in range(-400, 0):  # the lengths of answers become known
        world.arrive([request(key, 8, answer, arrived_s=world.now_s)])
        if key % seats == 0:
            world.run()
    world.arrive([request(key, 8, answer, arrived_s=world.now_s) for key in range(seats)])
    world.run(until_s=world.now_s + 0.05)
    retry_s, scheduler = None, world.scheduler
    for key in range(1000, 2000):
        one = request(key, 8, answer, tenant=f"t{key % 7}", arrived_s=world.now_s)
        world.records[key] = RequestRecord(one)
        try:
            scheduler.add(one, world.now_s)
        except QueueFullError as error:
            retry_s = error.retry_after_s
            break
    began_s = world.now_s
    while scheduler.statistics.waiting_requests:
        world.run(until_s=world.now_s + 0.05)
    served_s = world.now_s - began_s
    assert retry_s is not None
    assert min(20.0, 0.7 * served_s) <= retry_s <= 2.0 + 2.0 * served_s


@pytest.mark.parametrize("seed", range(40))
def test_what_is_served_before_a_request_is_what_the_line_serves_before_it(seed: int) -> None:
    chance, state = random.Random(seed), SchedulerState(LIMITS, SchedulingOptions())
    line = state.interactive

    def made(key: int) -> LiveSequence:
        tenant, size = f"t{chance.randrange(4)}", chance.randrange(1, 200)
        one = request(key, size, chance.randrange(1, 300), tenant=tenant)
        return LiveSequence(one, chance.uniform(0.0, 10.0))

    def serve(one: LiveSequence) -> None:
        line.remove(one)
        state.charges.start(one, state.expected_left(one))

    for key in range(30):
        state.wait(made(key))
    for _ in range(chance.randrange(20)):
        first = line.first()
        assert first is not None
        serve(first)
    new = made(100)
    expected = {one.key for one in served_before(new, line, state)}
    state.wait(new)
    served = set()
    while (first := line.first()) is not new:
        assert first is not None
        served.add(first.key)
        serve(first)
    assert expected == served


@pytest.mark.parametrize("prefix", ["a", "z"])
def test_client_that_invents_tenants_cannot_starve_another_one(prefix: str) -> None:
    """Equal shares were ordered by name: a tenant that sorts last was never served."""
    state = SchedulerState(LIMITS, SchedulingOptions())

    def wait(key: int, tenant: str, place_s: float) -> None:
        one = request(key, 50, 50, tenant=tenant, arrived_s=place_s)
        state.wait(LiveSequence(one, place_s))

    for key in range(5):
        wait(key, "m", 0.0)
    for key in range(100, 130):
        wait(key, f"{prefix}{key}", 0.1)
    left = set(range(5))
    for key in range(130, 430):
        first = state.interactive.first()
        assert first is not None
        state.interactive.remove(first)
        state.charges.start(first, 50.0)
        left.discard(first.key)
        wait(key, f"{prefix}{key}", float(key))
    assert not left
