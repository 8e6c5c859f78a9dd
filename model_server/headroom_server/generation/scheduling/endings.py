"""Ends requests: releases what they hold, and learns from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.generation.scheduling.admission.decision import Admission
from headroom_server.generation.scheduling.iterations.executing_iteration import ExecutingIteration
from headroom_server.generation.scheduling.sequences import LiveSequence, Phase
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import Delivery, FinishReason


class Endings:
    """Takes requests out of a scheduler. One that executes keeps its blocks until that ends."""

    def __init__(
        self, state: SchedulerState, executing: ExecutingIteration, admission: Admission
    ) -> None:
        self._state = state
        self._executing = executing
        self._admission = admission

    def end(
        self, sequence: LiveSequence, reason: FinishReason, now_s: float, error: str = ""
    ) -> Delivery:
        """End a request without an answer, or without the rest of it."""
        self.leave(sequence, reason, now_s)
        return Delivery(sequence.key, (), reason, error=error)

    def leave(self, sequence: LiveSequence, reason: FinishReason, now_s: float) -> None:
        """Take out a request whose end is delivered."""
        state = self._state
        state.withdraw(sequence)
        sequence.phase = Phase.ENDED
        del state.live[sequence.key]
        if self._executing.executes(sequence):
            self._executing.left.append(sequence)
        else:
            state.memory.release(sequence)
        if reason in (FinishReason.STOP, FinishReason.LENGTH):
            state.lengths.record(sequence.generated)
            if sequence.request.deadline_s is not None:
                self._admission.record(sequence, now_s, missed=False)
        state.charges.end(sequence)

    def release(self, sequences: Sequence[LiveSequence]) -> None:
        """Release the blocks of those that ended while they executed."""
        for sequence in sequences:
            self._state.memory.release(sequence)
