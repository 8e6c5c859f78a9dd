"""Random requests, limits, failures and cancellations: the scheduler ends each request once.

Each run draws small limits, so that memory is short, and a stream of requests of three tenants.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.errors import InvalidRequestError, RefusedError
from headroom_server.generation.scheduling.costs.iteration_cost import Features, features_of
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import (
    Delivery,
    GenerationLimits,
    GenerationRequest,
    Iteration,
)
from support.generation_world import END, Device

STEPS, LAST_ARRIVAL = 200, 150


def limits_of(draw: random.Random) -> GenerationLimits:
    block_tokens, blocks = draw.choice([1, 2, 4, 16]), draw.randint(4, 60)
    return GenerationLimits(
        context_tokens=draw.randint(8, block_tokens * blocks + 50),
        vocabulary=1000,
        blocks=blocks,
        block_tokens=block_tokens,
        max_sequences=draw.randint(1, 8),
        max_iteration_tokens=draw.choice([16, 17, 32, 64, 200]),
    )


def options_of(draw: random.Random) -> SchedulingOptions:
    return SchedulingOptions(
        max_waiting_requests=draw.choice([1, 3, 30]),
        max_waiting_tokens=draw.choice([10, 200, 10_000]),
        time_per_token_s=draw.choice([None, None, 0.001, 0.02]),
        prefix_cache=draw.random() < 0.7,
        max_drafts=draw.choice([0, 0, 3, 8]),
        draft_model=draw.random() < 0.3,
    )


def request_of(draw: random.Random, key: int, now_s: float) -> GenerationRequest:
    words, length = draw.choice([3, 900]), draw.choice([1, 2, 5, 20, 60, 100])
    return GenerationRequest(
        key=key,
        prompt=tuple(draw.randint(1, words) for _ in range(length)),
        max_tokens=draw.choice([1, 3, 20, 100]),
        tenant=draw.choice("abc"),
        priority=draw.randint(0, 9),
        batch_class=draw.random() < 0.3,
        arrived_s=now_s,
        deadline_s=draw.choice([None, None, now_s + 0.001, now_s + 1.0, now_s + 100.0]),
        first_token_deadline_s=draw.choice([None, None, now_s + 0.001, now_s + 1.0]),
        stop_tokens=frozenset({END}),
    )


@dataclass
class Run:
    """One scheduler with its device, and the requests that have not ended."""

    draw: random.Random
    now_s: float = 0.0
    keys: int = 0
    live: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.limits = limits_of(self.draw)
        self.scheduler = Scheduler(self.limits, options_of(self.draw), chance=self.draw.random)
        base_s = self.draw.choice([1e-4, 6e-3])
        self.device = Device(base_s=base_s, block_tokens=self.limits.block_tokens)
        for one in range(self.draw.choice([0, 4, 6])):
            features = Features(2**one, one, 10 * one, 2**one * one)
            self.scheduler.learn(features, self.device.seconds(features))

    def arrive(self) -> None:
        self.keys += 1
        try:
            self.scheduler.add(request_of(self.draw, self.keys, self.now_s), self.now_s)
        except (RefusedError, InvalidRequestError):
            return
        self.live.add(self.keys)

    def cancel(self) -> None:
        if self.live:
            key = self.draw.choice(sorted(self.live))
            self.scheduler.cancel(key, self.now_s)
            self.live.discard(key)

    def took(self, deliveries: Iterable[Delivery]) -> None:
        for one in deliveries:
            assert one.key in self.live
            if one.finish is not None:
                self.live.discard(one.key)

    def iterate(self, *, faults: bool) -> bool:
        """Run one iteration; return whether there was one."""
        self.took(self.scheduler.expire(self.now_s))
        self._draft()
        iteration = self.scheduler.next_iteration(self.now_s)
        if iteration is None:
            return False
        self._check(iteration)
        end_s = self.now_s + self.device.seconds(features_of(iteration))
        if faults and self.draw.random() < 0.1:
            self.cancel()
        if faults and self.draw.random() < 0.07:
            self.took(self.scheduler.fail(iteration, "broken", end_s))
        else:
            result = self.device.execute(iteration)
            self.took(self.scheduler.complete(iteration, result, self.now_s, end_s))
        self.now_s = end_s
        return True

    def _draft(self) -> None:
        wanted = self.scheduler.wanted_drafts()
        if wanted is not None:
            drafts = [
                tuple(self.draw.randint(1, 900) for _ in range(self.draw.randint(0, wanted.most)))
                for _ in wanted.sequences
            ]
            self.scheduler.take_drafts(wanted, drafts, 1e-4)

    def _check(self, iteration: Iteration) -> None:
        """Token budget, seats, one chunk per sequence, and no write to a block that others read."""
        chunks = iteration.chunks
        assert sum(len(chunk.tokens) for chunk in chunks) <= self.limits.max_iteration_tokens
        assert len(chunks) <= self.limits.max_sequences
        assert len({id(chunk.sequence) for chunk in chunks}) == len(chunks)
        written = Counter(
            block
            for chunk in chunks
            for block in {
                chunk.blocks[place // self.limits.block_tokens]
                for place in range(chunk.start, chunk.start + len(chunk.tokens))
            }
        )
        assert max(written.values()) == 1


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_request_of_a_random_schedule_ends_once_and_leaves_no_block(seed: int) -> None:
    run = Run(random.Random(seed))
    for step in range(STEPS):
        for _ in range(run.draw.choice([0, 0, 1, 1, 3]) if step < LAST_ARRIVAL else 0):
            run.arrive()
        if run.draw.random() < 0.2:
            run.cancel()
        if not run.iterate(faults=True):
            assert not run.live
            run.now_s += 0.01
    for _ in range(5000):
        if not run.iterate(faults=False):
            break
    assert not run.live
    assert run.scheduler.statistics.used_blocks == 0
