"""The prompts of an iteration: in order of service, within their pace. Pure.

While usual requests run or wait, long prompts are served apart: after the others, from a time of
their own, so that their number changes nothing for the others.
"""

from __future__ import annotations

import math

from headroom_server.generation.scheduling.costs.iteration_cost import Features
from headroom_server.generation.scheduling.costs.pace import Pace, pace_of_long, pace_of_usual
from headroom_server.generation.scheduling.iterations.iteration_budget import (
    LEAST_CHUNK,
    IterationBudget,
)
from headroom_server.generation.scheduling.iterations.prompt_starts import PromptStarts
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting.service_order import order
from headroom_server.generation.values import Chunk

UNKNOWN_TOKENS = 256
"""Tokens of prompts in an iteration before the cost of one is known."""
MUCH_SHORTER = 4
"""A long prompt that continues lets another one pass that has this many times fewer tokens left."""
KEPT_SHARE = 0.5
"""Share of the time for prompts that a prompt which continues keeps while others pass it."""


class PromptFill:
    """Adds chunks of prompts to the decodes of one iteration."""

    def __init__(self, state: SchedulerState, chunks: list[Chunk], now_s: float) -> None:
        self._state = state
        self._chunks = chunks
        self._now_s = now_s
        all_decode = len(chunks) == len(state.decoding)
        self._context_tokens = (
            state.context_tokens if all_decode else sum(len(one.sequence.tokens) for one in chunks)
        )
        """Contexts of the decodes of this iteration: some may pause."""
        left = state.limits.max_iteration_tokens - sum(len(one.tokens) for one in chunks)
        self.budget = IterationBudget(state.cost, left)
        self._starts = PromptStarts(state, chunks, now_s)
        self._apart = state.long_apart
        """Whether long prompts are served apart."""
        self._long = False
        """Whether they are served now."""
        self._visited: set[int] = set()
        """Keys of prompts that have had their turn."""
        self._computing: set[bytes] = set()
        """Names of blocks that this iteration computes."""

    def fill(self, due_within_s: float | None) -> None:
        """Take prompts in order of service; first tokens are usually due within `due_within_s`."""
        self._serve(due_within_s)
        if self._apart:
            self._long = True
            self._serve(due_within_s)

    def _serve(self, due_within_s: float | None) -> None:
        running, head = self._running(), self._head()
        first = min((one for one in (*running[:1], head) if one), key=order, default=None)
        saved, added = self._state.saved_s, self.budget.chunks
        if first is None:
            saved[self._long] = 0.0
            return
        whole = self._pace(first, due_within_s).after(saved[self._long])
        continuing = self._continuing(first, whole, running)
        if continuing is None:
            self._serve_in_order(running, whole)
        else:
            self._visited.add(continuing.key)
            self._serve_in_order(running, whole.without(KEPT_SHARE * whole.partial_s))
            self._add(continuing, whole)
        saved[self._long] = 0.0
        if self.budget.chunks == added and not self._size(first, whole):
            left_s = whole.partial_s - self.budget.spent_s
            saved[self._long] = min(left_s, self._state.cost.prompt_s(LEAST_CHUNK))

    def _serve_in_order(self, running: list[LiveSequence], pace: Pace) -> None:
        """Compute running prompts, and start waiting ones where their turn comes."""
        may_start = True
        while self.budget.tokens > 0:
            head = self._head() if may_start else None
            current = next((one for one in running if one.key not in self._visited), None)
            if head is not None and (current is None or self._state.sooner(head, current) is head):
                if not self._size(head, pace):  # it waits for more time; a short one may still fit
                    head = self._short(head, pace)
                may_start = head is not None and self._starts.start(
                    head, keep_for_long=self._apart and not self._long
                )
                running = self._running()  # others may have been interrupted, even in vain
                if head is not None and may_start:
                    self._add(head, pace)
                continue
            if current is None:
                break
            self._add(current, pace)

    def _running(self) -> list[LiveSequence]:
        """Return the prompts that are being computed and served now, in order of service."""
        prefilling = self._state.prefilling
        return [one for one in prefilling if one.long is self._long] if self._apart else prefilling

    def _head(self) -> LiveSequence | None:
        """Return the waiting prompt to be started next; batch class if no other waits."""
        state = self._state
        if self._long:
            return state.long.first()
        head = state.interactive.first()
        if state.long.count:
            long = None if self._apart else state.long.first()
            if head is not None and long is not None:
                return state.sooner(head, long)
            return head or long  # no batch class while long ones wait, even if they are apart
        return state.batch.first() if head is None else head

    def _continuing(
        self, first: LiveSequence, pace: Pace, running: list[LiveSequence]
    ) -> LiveSequence | None:
        """Return the first prompt if it runs and does not end now, while others wait behind it.

        Then the others are served first, from what it does not need to progress: a short prompt
        does not wait until a long one is complete. Long ones wait for each other: two that share
        their time would both be late.
        """
        if first is not (running or (None,))[0] or not self._state.cost.known:
            return None
        other = running[1] if len(running) > 1 else self._head()
        passed = other is not None
        if self._long and other is not None:
            passed = MUCH_SHORTER * other.remaining < first.remaining
        return first if passed and self._size(first, pace) < first.remaining else None

    def _pace(self, first: LiveSequence, due_within_s: float | None) -> Pace:
        state, cost = self._state, self._state.cost
        if not cost.known:
            self.budget.tokens = min(self.budget.tokens, UNKNOWN_TOKENS)
            return Pace(math.inf, math.inf)
        decodes = len(self._chunks) - self.budget.chunks
        base_s = cost.seconds(Features(0, decodes, self._context_tokens))
        if self._long:
            return pace_of_long(base_s, state.long_contexts_s, self.budget.spent_s)
        waiting = state.interactive.tokens + (0 if self._apart else state.long.tokens)
        tokens = waiting + sum(one.remaining for one in self._running())
        return pace_of_usual(
            base_s,
            decoding=bool(decodes),
            promised_s=state.options.time_per_token_s,
            backlog_s=cost.prompt_s(1) * tokens,
            waited_s=0.0 if first.request.batch_class else self._now_s - first.request.arrived_s,
            own_s=cost.prompt_s(len(first.tokens)),
            due_within_s=due_within_s,
        )

    def _size(self, sequence: LiveSequence, pace: Pace) -> int:
        return self.budget.size(sequence, pace, alone=not self._chunks)

    def _short(self, head: LiveSequence, pace: Pace) -> LiveSequence | None:
        """Return a short prompt that can be finished in the time that is too little for `head`."""
        short = self._state.line_of(head).shortest()
        return None if short is None or self._size(short, pace) < short.remaining else short

    def _add(self, sequence: LiveSequence, pace: Pace) -> None:
        """Add the chunk of a started prompt that its pace allows, if any."""
        state, size = self._state, self._state.memory.block_tokens
        self._visited.add(sequence.key)
        adopted = state.memory.adopt(sequence)
        if adopted:
            state.count("cached_prompt_tokens", adopted)
            if not sequence.preemptions:
                sequence.cached_tokens += adopted
        start = sequence.computed
        names = sequence.digests[start // size :]
        if names and not start % size and names[0] in self._computing:
            return  # another sequence computes this block now: it is shared afterwards
        count = self._size(sequence, pace)
        if not count:
            return
        end = start + count
        tokens = tuple(sequence.tokens[start:end])
        last = end == len(sequence.tokens)
        self._chunks.append(Chunk(sequence, start, tokens, sequence.blocks, samples=last))
        self._computing.update(names[: end // size - start // size])
        self.budget.take(start, count)
