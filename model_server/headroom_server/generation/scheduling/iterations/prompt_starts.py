"""Starts waiting prompts: each needs a seat and memory, which others may have to give. Pure.

Batch-class requests give theirs to interactive ones; a tenant that has several seats gives one to a
tenant that has none, once in an iteration.
"""

from __future__ import annotations

from headroom_server.generation.scheduling.iterations.decode_plan import last_protected
from headroom_server.generation.scheduling.iterations.memory_peak import memory_admits
from headroom_server.generation.scheduling.iterations.seats import free_seats, seat_victim
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting.service_order import order
from headroom_server.generation.values import Chunk


class PromptStarts:
    """Starts prompts for one iteration. Who gives its seat also leaves the iteration's chunks."""

    def __init__(self, state: SchedulerState, chunks: list[Chunk], now_s: float) -> None:
        self._state = state
        self._chunks = chunks
        self._now_s = now_s
        self._taken = False
        """Whether a tenant gave a seat to another one."""

    def start(self, head: LiveSequence, *, keep_for_long: bool) -> bool:
        """Start a waiting sequence, if a seat and memory are left or can be taken.

        With `keep_for_long`, the long prompt that comes before it keeps what it needs.
        """
        state, memory = self._state, self._state.memory
        seats, blocks = self._kept(head) if keep_for_long else (0, 0)
        while True:
            prefix = memory.prefix(head)
            needed = memory.new_blocks(head, prefix)
            if free_seats(state) > seats and memory_admits(state, head, needed + blocks):
                state.start(head, prefix)
                if head.started_s is None:
                    head.started_s = self._now_s
                return True
            if head.request.batch_class:
                return False
            if not self._preempt_batch() and not self._preempt_of_largest_tenant(head):
                return False

    def _kept(self, head: LiveSequence) -> tuple[int, int]:
        """Return the seats and blocks of the long prompt that comes before `head`, if one waits."""
        state = self._state
        if any(one.long for one in state.prefilling):
            return 0, 0
        long = state.long.first()
        if long is None or order(head) < order(long):
            return 0, 0
        return 1, state.memory.new_blocks(long, state.memory.prefix(long))

    def _preempt_batch(self) -> bool:
        """Take the seat of the batch-class request that is protected least."""
        if not self._state.running:
            return False
        victim = last_protected(self._state)
        if not victim.request.batch_class:
            return False
        self._preempt(victim)
        return True

    def _preempt_of_largest_tenant(self, head: LiveSequence) -> bool:
        """Take one seat of the tenant that has most, for a tenant that has none."""
        victim = None if self._taken else seat_victim(self._state, head)
        if victim is None:
            return False
        self._taken = True
        self._preempt(victim)
        return True

    def _preempt(self, victim: LiveSequence) -> None:
        self._state.preempt(victim)
        chunks, key = self._chunks, victim.key
        chunks[:] = [chunk for chunk in chunks if chunk.sequence.request.key != key]
