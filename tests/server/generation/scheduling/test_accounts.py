"""Whatever happens, in whatever order: blocks add up, every request ends once, tokens are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headroom_server.errors import RefusedError
from headroom_server.generation.scheduling.costs.iteration_cost import features_of
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationLimits,
    Iteration,
)
from support.generation_world import Device, RequestRecord, next_token, request

SMALL = GenerationLimits(
    context_tokens=256,
    vocabulary=1000,
    blocks=24,
    block_tokens=16,
    max_sequences=6,
    max_iteration_tokens=48,
)
SHARED = tuple(range(100, 180))
"""Five blocks with which some prompts begin."""


class Accounts(RuleBasedStateMachine):
    """A scheduler with little memory, and all that clients and devices can do to it."""

    def __init__(self) -> None:
        super().__init__()
        options = SchedulingOptions(max_drafts=3, max_waiting_requests=12, max_waiting_tokens=900)
        self.scheduler = Scheduler(SMALL, options)
        self.device = Device()
        self.now_s = 0.0
        self.records: dict[int, RequestRecord] = {}
        self.iteration: Iteration | None = None

    @rule(
        shared=st.integers(0, 80),
        own=st.integers(1, 60),
        answer=st.integers(1, 60),
        priority=st.integers(0, 9),
        tenant=st.sampled_from("abc"),
        batch=st.booleans(),
        first_s=st.none() | st.floats(0.001, 2.0),
        whole_s=st.none() | st.floats(0.001, 5.0),
    )
    def add(
        self,
        shared: int,
        own: int,
        answer: int,
        priority: int,
        tenant: str,
        batch: bool,
        first_s: float | None,
        whole_s: float | None,
    ) -> None:
        key = len(self.records)
        one = request(
            key,
            SHARED[:shared] + tuple(1 + (key + at * at) % 7 for at in range(own)),
            answer,
            priority=priority,
            tenant=tenant,
            batch_class=batch,
            arrived_s=self.now_s,
            first_token_deadline_s=None if first_s is None else self.now_s + first_s,
            deadline_s=None if whole_s is None else self.now_s + whole_s,
        )
        self.records[key] = RequestRecord(one)
        try:
            self.scheduler.add(one, self.now_s)
        except RefusedError:
            self.records[key].refused = True

    @rule(pick=st.integers(0, 1000))
    def cancel(self, pick: int) -> None:
        if self.records:
            self._deliver(self.scheduler.cancel(pick % len(self.records), self.now_s))

    @rule(seconds=st.floats(0.0, 1.0))
    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self._deliver(self.scheduler.expire(self.now_s))

    @precondition(lambda self: self.iteration is None)
    @rule()
    def begin(self) -> None:
        self.iteration = self.scheduler.next_iteration(self.now_s)
        if self.iteration is not None:
            chunks = self.iteration.chunks
            assert sum(len(chunk.tokens) for chunk in chunks) <= SMALL.max_iteration_tokens
            assert len(chunks) <= SMALL.max_sequences
            written = Counter(
                chunk.blocks[at // 16]
                for chunk in chunks
                for at in {*range(chunk.start, chunk.start + len(chunk.tokens), 16), chunk.start}
            )
            assert set(written.values()) <= {1}, "two sequences write to one block"

    @precondition(lambda self: self.iteration is not None)
    @rule()
    def complete(self) -> None:
        iteration, self.iteration = self.iteration, None
        assert iteration is not None
        began_s = self.now_s
        self.now_s += self.device.seconds(features_of(iteration))
        result = self.device.execute(iteration)
        self._deliver(self.scheduler.complete(iteration, result, began_s, self.now_s))

    @precondition(lambda self: self.iteration is not None)
    @rule()
    def fail(self) -> None:
        iteration, self.iteration = self.iteration, None
        assert iteration is not None
        self._deliver(self.scheduler.fail(iteration, "failed", self.now_s))

    @invariant()
    def blocks_add_up(self) -> None:
        counts = self.scheduler.statistics
        assert counts.used_blocks + counts.cached_blocks + counts.free_blocks == SMALL.blocks
        pool = self.scheduler._state.memory.pool
        held = Counter(block for one in self.scheduler._state.live.values() for block in one.blocks)
        held.update(block for one in self.scheduler._executing.left for block in one.blocks)
        assert all(pool._references[block] == held[block] for block in range(SMALL.blocks))

    @invariant()
    def contexts_add_up(self) -> None:
        state = self.scheduler._state
        assert state.context_tokens == sum(len(one.tokens) for one in state.decoding.values())
        lines = state.lines
        assert sum(line.tokens for line in lines) == sum(
            len(one.tokens) for line in lines for one in line
        )

    def teardown(self) -> None:
        for _ in range(3000):
            if self.iteration is not None:
                self.complete()
            self.begin()
            if self.iteration is None:
                break
        assert self.scheduler.idle, "an accepted request was never finished"
        assert self.scheduler.statistics.used_blocks == 0
        for record in self.records.values():
            assert record.refused == (record.finish is None)
            held = list(record.request.prompt)
            for token in record.tokens:
                assert token == next_token(held)
                held.append(token)
            if record.finish is FinishReason.LENGTH:
                assert len(record.tokens) == record.request.max_tokens

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            record = self.records[delivery.key]
            assert not record.refused
            assert record.finish is None, "delivered after the finish"
            record.tokens += [one.token for one in delivery.tokens]
            record.finish = delivery.finish


Accounts.TestCase.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)
TestAccounts = Accounts.TestCase
