"""Promises of the scheduler, measured on a virtual device: Llama 8B on an H100.

Prompts and answers have log-normal lengths with the means and spreads of Azure's recorded
conversations (1 155 and 211 tokens).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator

import pytest

from headroom_server.generation.scheduling.costs.iteration_cost import Features
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.values import FinishReason, GenerationLimits, GenerationRequest
from support.generation_world import LIMITS, Device, RequestRecord, World, percentile, request

GPU = GenerationLimits(
    context_tokens=32_768,
    vocabulary=1000,
    blocks=21_875,
    block_tokens=16,
    max_sequences=256,
    max_iteration_tokens=8192,
)
UNBOUNDED = SchedulingOptions(max_waiting_requests=1 << 30, max_waiting_tokens=1 << 50)


def lengths(chance: random.Random) -> tuple[int, int]:
    prompt = chance.lognormvariate(math.log(800), 0.86)
    answer = chance.lognormvariate(math.log(150), 0.83)
    return max(1, min(8000, int(prompt))), max(2, min(1000, int(answer)))


def poisson(
    count: int,
    rate_rps: float,
    make: Callable[[int, float, random.Random], GenerationRequest],
    seed: int = 1,
) -> Iterator[GenerationRequest]:
    chance, now_s = random.Random(seed), 0.0
    for key in range(1, count + 1):
        now_s += chance.expovariate(rate_rps)
        yield make(key, now_s, chance)


def ran(requests: Iterable[GenerationRequest], options: SchedulingOptions = UNBOUNDED,
        limits: GenerationLimits = GPU) -> World:  # fmt: skip
    world = World(limits=limits, options=options)
    world.arrive(requests)
    world.run()
    return world


def tokens(world: World) -> int:
    return sum(len(record.tokens) for record in world.records.values())


def test_continuous_batches_give_twice_the_tokens_of_static_ones() -> None:
    chance = random.Random(1)
    batch, device = 16, Device()
    requests = [request(key, *lengths(chance)) for key in range(160)]
    world = ran(requests, limits=GPU._replace(max_sequences=batch))
    static_s = 0.0
    for at in range(0, len(requests), batch):  # each batch runs until its longest answer ends
        group = requests[at : at + batch]
        prompts = [len(one.prompt) for one in group]
        static_s += device.seconds(Features(sum(prompts)))
        for step in range(1, max(one.max_tokens for one in group)):
            static_s += device.seconds(Features(0, batch, sum(prompts) + step * batch))
    assert static_s / world.now_s >= 2.0


@pytest.mark.parametrize(("rate_rps", "every_s"), [(20.0, 3.0), (20.0, 0.5), (40.0, 0.17)])
def test_short_prompts_hardly_notice_long_ones(rate_rps: float, every_s: float) -> None:
    """Long prompts alone take 6, 34 and 100 % of the device: what does not fit waits."""

    def short(key: int, now_s: float, chance: random.Random) -> GenerationRequest:
        return request(key, chance.randrange(50, 500), chance.randrange(50, 300), arrived_s=now_s)

    shorts = list(poisson(250, rate_rps, short))
    longs = [
        request(10_000 + k, 8192, 50, arrived_s=1.0 + every_s * k)
        for k in range(int(shorts[-1].arrived_s / every_s))
    ]
    alone, together = ran(shorts), ran([*shorts, *longs])

    def p95(world: World, of: Callable[[RequestRecord], float]) -> float:
        return percentile((of(world.records[one.key]) for one in shorts), 0.95)

    assert p95(together, first_s) <= 1.5 * p95(alone, first_s)
    assert p95(together, pace_s) <= 1.3 * p95(alone, pace_s)
    assert all(len(together.records[one.key].tokens) == 50 for one in longs)


def first_s(record: RequestRecord) -> float:
    return record.first_token_s


def pace_s(record: RequestRecord) -> float:
    return record.per_token_s


def test_long_prompts_beyond_the_bound_are_refused_by_their_own_deadlines() -> None:
    def due(key: int, now_s: float, chance: random.Random) -> GenerationRequest:
        size, first_s = (8192, 4.0) if key % 5 == 0 else (chance.randrange(50, 500), 0.5)
        return request(key, size, 100, arrived_s=now_s, first_token_deadline_s=now_s + first_s)

    world = ran(poisson(500, 25.0, due))
    shorts = [record for record in world.records.values() if len(record.request.prompt) < 8192]
    longs = [record for record in world.records.values() if len(record.request.prompt) == 8192]
    assert sum(record.refused for record in shorts) <= 0.02 * len(shorts)
    accepted = [record for record in longs if not record.refused]
    assert len(longs) > 2 * len(accepted) > 0
    in_time = [record for record in accepted if record.finish is FinishReason.LENGTH]
    assert len(in_time) >= 0.9 * len(accepted)


def test_a_long_prompt_gets_a_seat_though_short_ones_always_wait() -> None:
    def short(key: int, now_s: float, chance: random.Random) -> GenerationRequest:
        return request(key, chance.randrange(20, 400), 60, arrived_s=now_s)

    long = request(99_999, 8192, 10, arrived_s=3.0)
    world = ran([*poisson(400, 20.0, short), long], limits=GPU._replace(max_sequences=4))
    later = [one for one in world.records.values() if one.request.arrived_s > 12.0]
    assert len(later) > 100
    served_s = world.records[99_999].token_times_s[0]
    assert all(served_s < record.token_times_s[0] for record in later)


@pytest.mark.parametrize(("promised_s", "due_s"), [(0.025, 1.0), (None, 1.0)])
def test_overload_keeps_capacity_and_refuses_the_rest(
    promised_s: float | None, due_s: float
) -> None:
    def due(key: int, now_s: float, chance: random.Random) -> GenerationRequest:
        return request(key, *lengths(chance), arrived_s=now_s, first_token_deadline_s=now_s + due_s)

    def good_rps(rate_rps: float) -> float:
        requests = list(poisson(400, rate_rps, due))
        world = ran(requests, UNBOUNDED._replace(time_per_token_s=promised_s))
        good = [
            record
            for record in world.records.values()
            if record.finish in (FinishReason.STOP, FinishReason.LENGTH)
            and record.first_token_s <= due_s
            and (promised_s is None or record.per_token_s <= promised_s)
        ]
        accepted = [record for record in world.records.values() if not record.refused]
        assert len(good) >= 0.9 * len(accepted)
        return len(good) / requests[-1].arrived_s

    capacity_rps = good_rps(22.0)
    assert good_rps(1.5 * 22.0) >= 0.9 * capacity_rps


def test_memory_lost_to_partial_blocks_is_small_and_none_leaks() -> None:
    chance = random.Random(2)
    limits = GPU._replace(blocks=3000)
    world = World(limits=limits, options=UNBOUNDED)
    count = 300
    requests = [request(key, *lengths(chance), arrived_s=key / 25.0) for key in range(count)]
    lost: list[float] = []

    def leave(key: int) -> Callable[[], None]:
        return lambda: world.cancel(key)

    def look() -> None:
        live = world.scheduler._state.live.values()
        room = sum(one.grown_tokens for one in live)
        if room:
            lost.append(1.0 - sum(len(one.tokens) for one in live if one.blocks) / room)

    world.arrive(requests)
    for one in requests:
        world.at(one.arrived_s + 0.01, look)
        if chance.random() < 0.2:
            world.at(one.arrived_s + chance.expovariate(1.0), leave(one.key))
    world.run()
    assert sum(lost) / len(lost) <= 0.04
    assert world.scheduler.statistics.used_blocks == 0
    assert world.scheduler.idle


def test_shared_prompt_is_computed_once() -> None:
    shared = tuple(1 + at * at % 997 for at in range(3600))

    def asks(key: int, first: int) -> GenerationRequest:
        return request(key, shared + request(key, 400).prompt, 20, arrived_s=first)

    world = ran([asks(key, 2 * key) for key in range(8)])
    first, *later = [world.records[key].first_token_s for key in range(8)]
    assert max(later) <= 0.25 * first
    assert world.records[7].cached_tokens == 3600
    together = ran([asks(key, 0) for key in range(8)])
    assert together.scheduler.statistics.computed_prompt_tokens < 4000 + 8 * 416


def test_other_tenants_prompts_are_not_shared() -> None:
    world = ran(
        request(1 + at, tuple(range(1, 900)), 4, tenant=tenant, arrived_s=at)
        for at, tenant in enumerate(("a", "b", "a"))
    )
    assert [world.records[key].cached_tokens for key in (1, 2, 3)] == [0, 0, 896]


def test_tenants_share_work_in_tokens_whatever_they_send() -> None:
    requests = [request(key, 1500, 100, tenant="greedy") for key in range(150)]
    requests += [request(1000 + key, 300, 100, tenant="modest") for key in range(250)]
    world = World(limits=GPU._replace(max_sequences=16), options=UNBOUNDED)
    world.arrive(requests)
    world.run(until_s=10.0)
    work = {"greedy": 0, "modest": 0}
    for record in world.records.values():
        if record.tokens:
            work[record.request.tenant] += len(record.request.prompt) + 2 * len(record.tokens)
    assert work["modest"] == pytest.approx(work["greedy"], rel=0.15)


def test_low_priority_is_served_after_its_age_under_constant_urgent_load() -> None:
    def urgent(key: int, now_s: float, _: random.Random) -> GenerationRequest:
        return request(key, 100, 60, priority=0, arrived_s=now_s)

    low = request(99_999, 100, 10, priority=9, arrived_s=0.5)
    urgents = list(poisson(400, 20.0, urgent))
    world = ran([*urgents, low], limits=GPU._replace(max_sequences=4))

    def served_s(one: GenerationRequest) -> float:
        return world.records[one.key].token_times_s[0]

    later = [one for one in urgents if one.arrived_s > 10.0]
    assert len(later) > 100
    assert all(served_s(low) < served_s(one) for one in later)
    assert all(served_s(low) > served_s(one) for one in urgents if one.arrived_s < 9.0)


def with_and_without_batch(
    interactive: list[GenerationRequest], fillers: int
) -> tuple[World, World, float, float]:
    """Serve interactive requests alone, then with a batch, within 20 ms per token.

    Returns both worlds and the 95th percentiles of the first token of the interactive ones.
    """
    options, limits = UNBOUNDED._replace(time_per_token_s=0.02), GPU._replace(max_sequences=64)
    batch = [request(5000 + k, 1000, 300, batch_class=True) for k in range(fillers)]
    alone, both = ran(interactive, options, limits), World(limits=limits, options=options)
    both.arrive([*interactive, *batch])
    both.run(until_s=interactive[-1].arrived_s + 5.0)
    assert percentile((both.records[one.key].per_token_s for one in interactive), 0.95) <= 0.02

    def first_p95(world: World) -> float:
        return percentile((world.records[one.key].first_token_s for one in interactive), 0.95)

    return alone, both, first_p95(alone), first_p95(both)


def test_batch_class_fills_what_interactive_requests_leave() -> None:
    def short(key: int, now_s: float, chance: random.Random) -> GenerationRequest:
        return request(key, chance.randrange(50, 500), 100, arrived_s=now_s)

    alone, both, first_s, first_with_batch_s = with_and_without_batch(
        list(poisson(120, 15.0, short)), 300
    )
    assert tokens(both) > 2 * tokens(alone)
    assert first_with_batch_s <= first_s + 0.03


def test_answers_of_the_batch_class_pause_while_long_prompts_are_computed() -> None:
    """Otherwise prompts get the 15 % of an iteration that these answers leave."""

    def long(key: int, now_s: float, chance: random.Random) -> GenerationRequest:
        return request(key, chance.randrange(1000, 4000), 100, arrived_s=now_s)

    alone, both, first_s, first_with_batch_s = with_and_without_batch(
        list(poisson(60, 5.0, long)), 600
    )
    assert tokens(both) > 5 * tokens(alone)
    assert first_with_batch_s <= 1.2 * first_s + 0.02


def test_preemption_makes_progress_with_memory_for_one() -> None:
    limits = LIMITS._replace(blocks=64, max_sequences=8)
    world = ran([request(key, 200, 800, priority=key % 10) for key in range(12)], limits=limits)
    assert all(len(record.tokens) == 800 for record in world.records.values())


def test_lookup_drafts_repeat_text_in_fewer_iterations_and_the_same_tokens() -> None:
    def run(drafts: int) -> World:
        world = World(
            Device(model=lambda held: held[-40]), options=UNBOUNDED._replace(max_drafts=drafts)
        )
        world.arrive([request(1, tuple(range(1, 41)), 400)])
        world.run()
        return world

    without, with_drafts = run(0), run(8)
    assert with_drafts.records[1].tokens == without.records[1].tokens
    assert without.now_s / with_drafts.now_s >= 1.5
    counts = with_drafts.scheduler.statistics
    assert counts.accepted_tokens > 5 * counts.rejected_tokens
