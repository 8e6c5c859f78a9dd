"""PURE. When the cost model follows the batches: at once where somebody asks, else some together.

Admission asks for every request with a deadline; then each batch is learnt from as it ends. Where
nobody does, what the model says now matters to nobody now, and to follow one batch costs as much as
to serve half a request: they are followed when there are `TOGETHER` of them, or somebody asks. The
model is the same in either case.
"""

from __future__ import annotations

from headroom_server.scheduling.cost_model import CostModel, Timing

UPDATE_BATCHES = 32
"""Batches. As many are followed at once after somebody has asked."""


class DeferredUpdates:
    """One model's cost, and the batches that it has yet to follow."""

    def __init__(self) -> None:
        self.applied: CostModel | None = None
        """After some of the batches; None until warm-up has timed any."""
        self._due: list[Timing] = []
        self._immediate = 0

    def begin(self, seed: CostModel) -> None:
        """From what warm-up saw."""
        self.applied = seed
        self._due.clear()

    def current(self) -> CostModel | None:
        """After all batches."""
        current = self.applied
        if current is not None and self._due:
            for timing in self._due:
                current = current.observe(*timing)
            self._due.clear()
            self.applied = current
        return current

    def current_for_admission(self) -> CostModel | None:
        """After all batches, for somebody who will ask again."""
        self._immediate = UPDATE_BATCHES
        return self.current()

    def add(self, timing: Timing) -> None:
        """A batch is over."""
        self._due.append(timing)
        self._immediate -= 1
        # where there are several lengths, batches are chosen by what they cost
        several = self.applied is not None and len(self.applied.fits) > 1
        if self._immediate >= 0 or several or len(self._due) >= UPDATE_BATCHES:
            self.current()
