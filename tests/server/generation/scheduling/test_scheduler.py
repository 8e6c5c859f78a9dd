"""Requests through the whole scheduler: every answer is complete, exact and ends once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headroom_server.errors import InvalidRequestError, QueueFullError, RefusedError
from headroom_server.generation.scheduling.costs.iteration_cost import Features
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import (
    FinishReason,
    GenerationLimits,
    Iteration,
    IterationResult,
)
from support.generation_world import LIMITS, Device, World, next_token, request


def alone(prompt: tuple[int, ...], tokens: int) -> list[int]:
    held = list(prompt)
    for _ in range(tokens):
        held.append(next_token(held))
    return held[len(prompt) :]


def test_requests_together_get_the_answers_they_get_alone() -> None:
    world = World()
    requests = [request(key, 5 + 700 * (key % 5), 3 + 9 * (key % 7)) for key in range(100)]
    world.arrive(requests)
    world.run()
    for one in requests:
        record = world.records[one.key]
        assert record.tokens == alone(one.prompt, one.max_tokens)
        assert record.finish is FinishReason.LENGTH
    assert world.scheduler.idle
    assert world.scheduler.statistics.used_blocks == 0


def test_long_prompt_of_the_batch_class_is_answered_among_usual_requests() -> None:
    world = World()
    usual = [request(key, 50, 300, arrived_s=0.01 * key) for key in range(20)]
    filler = request(99, 8000, 10, batch_class=True, arrived_s=0.5)
    world.arrive([*usual, filler])
    world.run()
    for one in (*usual, filler):
        assert world.records[one.key].tokens == alone(one.prompt, one.max_tokens)


def test_prompt_that_is_interrupted_in_vain_is_not_computed_without_its_memory() -> None:
    world = World(limits=LIMITS._replace(blocks=20, max_iteration_tokens=24))
    answering = request(1, 100, 60)  # 7 to 10 of the 20 blocks
    filler = request(2, 100, 4, batch_class=True, arrived_s=0.1)  # 7
    large = request(3, 200, 4, arrived_s=0.115)  # 13: more than is free without the filler
    world.arrive([answering, filler, large])
    world.run()
    assert world.scheduler.statistics.preemptions > 0
    for one in (answering, filler, large):
        assert world.records[one.key].tokens == alone(one.prompt, one.max_tokens)


def test_little_memory_preempts_and_changes_no_answer() -> None:
    world = World(limits=LIMITS._replace(blocks=40))
    requests = [request(key, 100, 300) for key in range(8)]
    world.arrive(requests)
    world.run()
    assert world.scheduler.statistics.preemptions > 0
    for one in requests:
        assert world.records[one.key].tokens == alone(one.prompt, 300)


def test_end_token_is_delivered_with_the_finish() -> None:
    world = World(Device(lengths={1: 3}))
    world.arrive([request(1, 8, 50)])
    world.run()
    assert world.records[1].tokens == [*alone(request(1, 8).prompt, 2), 0]
    assert world.records[1].finish is FinishReason.STOP


def test_cancel_during_an_iteration_frees_blocks_when_it_ends() -> None:
    world = World()
    world.arrive([request(1, 64, 50), request(2, 64, 50)])
    world.at(0.03, lambda: world.cancel(1))
    world.run()
    assert world.records[1].finish is FinishReason.CANCELLED
    assert len(world.records[2].tokens) == 50
    assert world.scheduler.statistics.used_blocks == 0


def test_failed_iteration_is_halved_until_the_failing_request_is_alone() -> None:
    scheduler, device = Scheduler(LIMITS), Device()
    for key in range(8):
        scheduler.add(request(key, 8, 2), 0.0)
    finished = {}
    for _ in range(40):
        iteration = scheduler.next_iteration(0.0)
        if iteration is None:
            break
        if any(chunk.sequence.request.key == 3 for chunk in iteration.chunks):
            deliveries = scheduler.fail(iteration, "bad", 0.0)
        else:
            deliveries = scheduler.complete(iteration, device.execute(iteration), 0.0, 0.01)
        finished.update({one.key: one.finish for one in deliveries if one.finish})
    assert finished.pop(3) is FinishReason.FAILED
    assert finished == dict.fromkeys([0, 1, 2, 4, 5, 6, 7], FinishReason.LENGTH)
    assert scheduler.statistics.used_blocks == 0


@pytest.mark.parametrize(
    ("prompt", "max_tokens"),
    [((), 1), (8, 0), (16_000, 385), ((1000,), 1), ((-1,), 1)],
)
def test_impossible_request_is_invalid(prompt: int | tuple[int, ...], max_tokens: int) -> None:
    with pytest.raises(InvalidRequestError):
        Scheduler(LIMITS).add(request(1, prompt, max_tokens), 0.0)


LITTLE = LIMITS._replace(blocks=10)
"""Memory of 160 tokens."""


@pytest.mark.parametrize(
    ("limits", "prompt", "max_tokens"),
    [(LIMITS, 16_000, 384), (LIMITS, (0, 999), 1), (LITTLE, 150, 10)],
    ids=["context", "vocabulary", "memory"],
)
def test_largest_possible_request_is_accepted(
    limits: GenerationLimits, prompt: int | tuple[int, ...], max_tokens: int
) -> None:
    Scheduler(limits).add(request(1, prompt, max_tokens), 0.0)


def test_request_for_more_than_all_memory_is_invalid() -> None:
    with pytest.raises(InvalidRequestError, match="must fit the memory of 160 tokens"):
        Scheduler(LITTLE).add(request(1, 150, 11), 0.0)


class SizedDevice(Device):
    """Notes the tokens of each iteration."""

    sizes: list[int]

    def execute(self, iteration: Iteration) -> IterationResult:
        self.sizes.append(sum(len(chunk.tokens) for chunk in iteration.chunks))
        return super().execute(iteration)


def known(scheduler: Scheduler, device: Device) -> Scheduler:
    """Let a scheduler know what iterations of the device cost."""
    for at in range(1, 200):
        features = Features(37 * at % 50, at % 8, 90 * (at % 8), 10.0 * (at % 30))
        scheduler.learn(features, device.seconds(features))
    return scheduler


def test_drafts_of_many_sequences_stay_within_an_iteration() -> None:
    def model(held: Sequence[int]) -> int:  # all decode before any can be looked up
        return next_token(held) if len(held) < 40 else held[-1] % 3 + 1

    device = SizedDevice(5e-3, 1e-6, 0.0, 0.0, 0.0, model=model)
    device.sizes = []
    limits = LIMITS._replace(max_sequences=8, max_iteration_tokens=16)
    world = World(device, limits, SchedulingOptions(max_drafts=8))
    known(world.scheduler, device)  # more tokens cost little: drafts pay
    world.arrive(request(key, 6, 100) for key in range(8))
    world.run()
    assert max(device.sizes) == 16
    assert all(len(record.tokens) == 100 for record in world.records.values())


def test_batch_request_that_is_refused_waits_for_interactive_and_batch_requests() -> None:
    scheduler = Scheduler(LIMITS, SchedulingOptions(max_waiting_requests=8), chance=lambda: 0.0)
    known(scheduler, Device(per_token_s=0.002))
    for key in range(8):
        batch_class, prompt = key < 4, 1000 if key < 4 else 8
        one = request(key, prompt, tenant=f"t{key}", batch_class=batch_class)
        scheduler.add(one, 0.0)
    retry_s = []
    for batch_class in (True, False):
        with pytest.raises(QueueFullError) as caught:
            scheduler.add(request(9, 8, batch_class=batch_class), 0.0)
        retry_s.append(caught.value.retry_after_s)
    assert retry_s[0] >= 4 * 1000 * 0.002 > retry_s[1]


def test_draining_scheduler_refuses_and_completes_what_it_accepted() -> None:
    world = World()
    world.arrive([request(1, 8, 20), request(2, 8, 20, arrived_s=0.05)])
    world.at(0.02, world.scheduler.drain)
    world.run()
    assert world.records[2].refused
    assert len(world.records[1].tokens) == 20
    with pytest.raises(RefusedError) as caught:
        world.scheduler.add(request(3), 1.0)
    assert caught.value.status == 503


def test_close_ends_everything_once() -> None:
    world = World()
    world.arrive([request(key, 400, 200) for key in range(100)])
    world.at(0.5, lambda: world.deliver(world.scheduler.close(world.now_s)))
    world.run()
    assert {record.finish for record in world.records.values()} <= {
        FinishReason.SHUTDOWN, FinishReason.LENGTH,
    }  # fmt: skip
    assert world.scheduler.idle
    assert world.scheduler.statistics.used_blocks == 0


def test_one_tenant_may_wait_with_as_much_as_is_free() -> None:
    scheduler = Scheduler(LIMITS, SchedulingOptions(max_waiting_tokens=10_000))
    for key in range(5):
        scheduler.add(request(key, 1000, 1, tenant="greedy"), 0.0)
    with pytest.raises(QueueFullError) as caught:
        scheduler.add(request(5, 1000, 1, tenant="greedy"), 0.0)
    assert caught.value.status == 429
    scheduler.add(request(99, 1000, 1, tenant="other"), 0.0)
