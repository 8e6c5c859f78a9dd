"""PURE. The prompts of an iteration: in order of service, within their pace.

While usual requests run or wait, long prompts are served apart: after the others, from a time of
their own, so that their number changes nothing for the others.
"""

from __future__ import annotations

import math

from headroom_server.generation.scheduling.decode_plan import last_protected
from headroom_server.generation.scheduling.iteration_cost import Features
from headroom_server.generation.scheduling.pace import Pace, pace, pace_of_long
from headroom_server.generation.scheduling.seats import free_seats, giver
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState, order
from headroom_server.generation.values import Chunk

UNKNOWN_TOKENS = 256
"""Tokens of prompts in an iteration before the cost of one is known."""
LEAST_CHUNK = 16
"""Smaller parts of a prompt are not worth an iteration's attention, unless nothing else runs."""


MUCH_SHORTER = 4
HELD_SHARE = 0.5
"""Share of the time for prompts that a long prompt whose turn it is keeps while others are
served."""


class PromptFill:
    """Adds chunks of prompts to one iteration."""

    def __init__(self, state: SchedulerState, chunks: list[Chunk], now_s: float) -> None:
        self.state = state
        self.chunks = chunks
        self.now_s = now_s
        whole = len(chunks) == len(state.decoding)
        contexts = state.context_tokens if whole else sum(len(c.sequence.tokens) for c in chunks)
        self.context_tokens = contexts
        """Contexts of the decodes of this iteration: some may pause."""
        self.room = state.limits.max_iteration_tokens - sum(len(c.tokens) for c in chunks)
        self.spent_s = 0.0
        self.prompt_tokens = 0
        self.products = 0.0
        self.chunks_added = 0
        self.apart = state.long_apart
        """Whether long prompts are served apart."""
        self.long = False
        """Whether they are served now."""
        self.seen: set[int] = set()
        self._took = False
        """Whether a tenant gave a seat to another one."""
        self.computing: set[bytes] = set()
        """Names of blocks that this iteration computes."""

    def fill(self, due_within_s: float | None) -> None:
        """Take prompts in order of service."""
        self._serve(due_within_s)
        if self.apart:
            self.long = True
            self._serve(due_within_s)

    def _serve(self, due_within_s: float | None) -> None:
        running, head = self._running(), self._head()
        first = min((one for one in (*running[:1], head) if one), key=order, default=None)
        saved, added = self.state.saved_s, self.chunks_added
        if first is None:
            saved[self.long] = 0.0
            return
        whole, may_start = self._pace(first, due_within_s).after(saved[self.long]), True
        held = self._held(first, whole, running)
        budget = whole if held is None else self._beside(held, whole)
        while self.room > 0:
            head = self._head() if may_start else None
            current = next((one for one in running if one.key not in self.seen), None)
            if head is not None and (current is None or self.state.sooner(head, current) is head):
                if not self._size(head, budget):  # its turn comes; a short one may still fit
                    head = self._short(head, budget)
                may_start = head is not None and self._start(head)
                running = self._running()  # others may have been interrupted, even in vain
                if head is not None and may_start:
                    self._add(head, budget)
                continue
            if current is None:
                break
            self._add(current, budget)
        if held is not None:
            self._add(held, whole)
        saved[self.long] = 0.0
        if self.chunks_added == added and not self._size(first, whole):
            left_s = whole.partial_s - self.spent_s
            saved[self.long] = min(left_s, self.state.cost.prompt_s(LEAST_CHUNK))

    def _running(self) -> list[LiveSequence]:
        """Return the prompts that are being computed and served now, in order of service."""
        prefilling = self.state.prefilling
        return [one for one in prefilling if one.long is self.long] if self.apart else prefilling

    def _held(
        self, first: LiveSequence, budget: Pace, running: list[LiveSequence]
    ) -> LiveSequence | None:
        """Return the first prompt if it runs and does not end now, while others wait behind it.

        Then the others are served first, from what it does not need to progress: a short prompt
        does not wait until a long one is complete. Long ones wait for each other: two that share
        their time would both be late.
        """
        if first is not (running or (None,))[0] or not self.state.cost.known:
            return None
        other = running[1] if len(running) > 1 else self._head()
        others = other is not None
        if self.long and other is not None:
            others = MUCH_SHORTER * other.remaining < first.remaining
        return first if others and self._size(first, budget) < first.remaining else None

    def _beside(self, held: LiveSequence, budget: Pace) -> Pace:
        """Return the budget of the prompts behind the one that is held."""
        self.seen.add(held.key)
        reserved_s = HELD_SHARE * budget.partial_s
        return Pace(budget.partial_s - reserved_s, budget.finishing_s - reserved_s)

    def _head(self) -> LiveSequence | None:
        state = self.state
        if self.long:
            return state.long.first()
        head = state.interactive.first()
        if state.long.count:
            long = None if self.apart else state.long.first()
            if head is not None and long is not None:
                return state.sooner(head, long)
            return head or long  # and none of the batch class
        return state.batch.first() if head is None else head

    def _pace(self, first: LiveSequence, due_within_s: float | None) -> Pace:
        state, cost = self.state, self.state.cost
        if not cost.known:
            self.room = min(self.room, UNKNOWN_TOKENS)
            return Pace(math.inf, math.inf)
        decodes = len(self.chunks) - self.chunks_added
        base_s = cost.seconds(Features(0, decodes, self.context_tokens))
        if self.long:
            return pace_of_long(base_s, state.long_contexts_s, self.spent_s)
        waiting = state.interactive.tokens + (0 if self.apart else state.long.tokens)
        tokens = waiting + sum(one.remaining for one in self._running())
        return pace(
            base_s,
            decoding=bool(decodes),
            promised_s=state.options.time_per_token_s,
            backlog_s=cost.prompt_s(1) * tokens,
            waited_s=0.0 if first.request.batch_class else self.now_s - first.request.arrived_s,
            own_s=cost.prompt_s(len(first.tokens)),
            due_within_s=due_within_s,
        )

    def _size(self, sequence: LiveSequence, budget: Pace) -> int:
        """Return how many tokens of a prompt to compute now; 0: none."""
        cost, before, left = self.state.cost, sequence.computed, sequence.remaining
        if left <= self.room and cost.prompt_s(left, before) <= budget.finishing_s - self.spent_s:
            return left
        size = min(self.room, cost.prompt_tokens_in(budget.partial_s - self.spent_s, before))
        if not self.chunks:
            size = max(size, min(LEAST_CHUNK, self.room))
        return min(left, int(size)) if size >= LEAST_CHUNK else 0

    def _short(self, head: LiveSequence, budget: Pace) -> LiveSequence | None:
        """Return a short prompt that can be finished now, if the head's turn is not now."""
        line = self.state.line_of(head)
        short = line.shortest()
        if short is None or self._size(short, budget) < short.remaining:
            return None
        return short

    def _start(self, head: LiveSequence) -> bool:
        """Start a waiting sequence if a seat and memory are left; batch ones give theirs."""
        state, memory = self.state, self.state.memory
        seats, blocks = self._owed(head)
        while True:
            prefix = memory.prefix(head)
            needed = memory.new_blocks(head, prefix)
            if free_seats(state) > seats and state.memory_admits(head, needed + blocks):
                state.start(head, prefix)
                if head.started_s is None:
                    head.started_s = self.now_s
                return True
            if head.request.batch_class:
                return False
            if not self._preempt_batch() and not self._preempt_hoarder(head):
                return False

    def _owed(self, head: LiveSequence) -> tuple[int, int]:
        """Return the seats and blocks of the long prompt that comes before `head`, if one waits."""
        state = self.state
        if not self.apart or self.long or any(one.long for one in state.prefilling):
            return 0, 0
        long = state.long.first()
        if long is None or order(head) < order(long):
            return 0, 0
        return 1, state.memory.new_blocks(long, state.memory.prefix(long))

    def _preempt_batch(self) -> bool:
        state = self.state
        if not state.running:
            return False
        victim = last_protected(state)
        if not victim.request.batch_class:
            return False
        self._preempt(victim)
        return True

    def _preempt_hoarder(self, head: LiveSequence) -> bool:
        """Take one seat of the tenant that has most, for a tenant that has none."""
        victim = None if self._took else giver(self.state, head)
        if victim is None:
            return False
        self._took = True  # once in an iteration
        self._preempt(victim)
        return True

    def _preempt(self, victim: LiveSequence) -> None:
        self.state.preempt(victim)
        key = victim.key
        self.chunks[:] = [chunk for chunk in self.chunks if chunk.sequence.request.key != key]

    def _add(self, sequence: LiveSequence, budget: Pace) -> None:
        state, size = self.state, self.state.memory.block_tokens
        self.seen.add(sequence.key)
        adopted = state.memory.adopt(sequence)
        if adopted:
            state.count("cached_prompt_tokens", adopted)
            if not sequence.preemptions:
                sequence.cached_tokens += adopted
        start = sequence.computed
        names = sequence.digests[start // size :]
        if names and not start % size and names[0] in self.computing:
            return  # another sequence computes this block now: it is shared afterwards
        count = self._size(sequence, budget)
        if not count:
            return
        end = start + count
        tokens = tuple(sequence.tokens[start:end])
        last = end == len(sequence.tokens)
        self.chunks.append(Chunk(sequence, start, tokens, sequence.blocks, samples=last))
        self.computing.update(names[: end // size - start // size])
        self.room -= count
        self.chunks_added += 1
        self.prompt_tokens += count
        self.products += count * (start + count / 2)
        self.spent_s += state.cost.prompt_s(count, start)
