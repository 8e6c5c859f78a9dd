"""The iteration that executes now, and which one repeats after a failure. Pure.

A failed iteration is repeated in halves until the failing chunk is alone: at most 2 log2(n) further
executions, before anything else runs. Repeating is harmless: keys and values are written to the
same positions again.
"""

from __future__ import annotations

from collections import deque

from headroom_server.generation.scheduling.costs.iteration_cost import Features
from headroom_server.generation.scheduling.sequences import LiveSequence, Phase
from headroom_server.generation.values import Chunk, Iteration


class ExecutingIteration:
    """The executing iteration, sequences that ended during it, and halves to be repeated."""

    __slots__ = ("_halves", "features", "iteration", "left", "whole")

    def __init__(self) -> None:
        self.iteration: Iteration | None = None
        self.features = Features()
        self.whole = True
        """Whether it is no repetition, so that its time is typical."""
        self.left: list[LiveSequence] = []
        """Sequences that ended while it executes: their blocks are still written to."""
        self._halves: deque[tuple[Chunk, ...]] = deque()

    def begin(self, iteration: Iteration, features: Features, *, whole: bool = True) -> None:
        """Record the iteration that executes from now on."""
        assert self.iteration is None, "an iteration executes already; complete or fail it first"
        self.iteration, self.features, self.whole = iteration, features, whole

    def end(self, iteration: Iteration) -> list[LiveSequence]:
        """Return the sequences whose blocks can be released now.

        Raises:
            ValueError: this is not the iteration that executes.
        """
        if iteration is not self.iteration:
            raise ValueError("only the iteration returned last can be completed")
        self.iteration = None
        left, self.left = self.left, []
        return left

    def executes(self, sequence: LiveSequence) -> bool:
        """Return whether the executing iteration writes to the sequence's blocks."""
        iteration = self.iteration
        return iteration is not None and any(one[0] is sequence for one in iteration.chunks)

    def split(self, chunks: tuple[Chunk, ...]) -> None:
        """Repeat a failed iteration in halves."""
        middle = len(chunks) // 2
        self._halves.appendleft(chunks[middle:])
        self._halves.appendleft(chunks[:middle])

    def next_half(self) -> Iteration | None:
        """Return the next part to repeat, without sequences that have ended since."""
        while self._halves:
            chunks = tuple(
                chunk for chunk in self._halves.popleft()
                if chunk.sequence.phase is not Phase.ENDED  # type: ignore[attr-defined]
            )  # fmt: skip
            if chunks:
                return Iteration(chunks)
        return None
