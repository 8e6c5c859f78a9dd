"""Load of a third-party engine, and whether it can compute another request. Pure."""

from __future__ import annotations

from bisect import insort

from headroom_server.generation.scheduling.iterations.memory_peak import MEMORY_SHARE
from headroom_server.generation.scheduling.sequences import LiveSequence, Phase
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting.service_order import order

ITERATIONS_AHEAD = 2
"""Prompts handed over, in iterations: one that is computed, and one that follows at once."""
BEFORE_ALL = 2.0**50
"""Places of requests in the engine begin so far before those of waiting ones."""


class EngineLoad:
    """The requests that were handed over and have not ended."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self.tokens = 0
        """Prompts handed over and tokens generated since, of requests that run."""
        self._handed_over = 0

    def fits(self, sequence: LiveSequence) -> bool:
        """Return whether a waiting request finds a seat, time and memory; alone it always does."""
        state, limits = self._state, self._state.limits
        if not state.running:
            return True
        if state.running >= limits.max_sequences:
            return False
        waiting = sum(one.remaining for one in state.prefilling)
        if waiting >= ITERATIONS_AHEAD * limits.max_iteration_tokens:
            return False
        room = MEMORY_SHARE * limits.blocks * limits.block_tokens - self.tokens
        to_come = len(sequence.tokens) + state.expected_left(sequence)
        return to_come + state.running * state.lengths.expected() / 2.0 <= room

    def hand_over(self, sequence: LiveSequence, now_s: float) -> None:
        """Move a waiting request to the engine."""
        state = self._state
        state.line_of(sequence).remove(sequence)
        sequence.phase = Phase.PREFILL
        sequence.started_s = now_s
        self._handed_over += 1
        sequence.place_s = self._handed_over - BEFORE_ALL  # no later request comes before it
        insort(state.prefilling, sequence, key=order)
        self.tokens += len(sequence.tokens)
        state.charges.start(sequence, state.expected_left(sequence))

    def grow(self, tokens: int) -> None:
        """Count generated tokens of a request that runs."""
        self.tokens += tokens

    def leave(self, sequence: LiveSequence) -> None:
        """Take out a request that has ended; one that still waits is not here."""
        if sequence.phase is not Phase.WAITING:
            self.tokens -= len(sequence.tokens)
