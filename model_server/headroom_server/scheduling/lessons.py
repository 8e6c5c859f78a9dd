"""PURE. When the cost model follows the batches: at once where somebody asks, else some together.

Admission asks for every request with a deadline; then each batch is learnt from as it ends. Where
nobody does, what the model says now matters to nobody now, and to follow one batch costs as much as
to serve half a request: they are followed when there are `TOGETHER` of them, or somebody asks. The
model is the same in either case.
"""

from __future__ import annotations

from headroom_server.scheduling.cost_model import CostModel, Timing

TOGETHER = 32
"""Batches. As many are followed at once after somebody has asked."""


class Lessons:
    """One model's cost, and the batches that it has yet to follow."""

    def __init__(self) -> None:
        self.followed: CostModel | None = None
        """After some of the batches; None until warm-up has timed any."""
        self._due: list[Timing] = []
        self._asked = 0

    def begin(self, seed: CostModel) -> None:
        """From what warm-up saw."""
        self.followed = seed
        self._due.clear()

    def cost(self) -> CostModel | None:
        """After all batches."""
        cost = self.followed
        if cost is not None and self._due:
            for timing in self._due:
                cost = cost.observe(*timing)
            self._due.clear()
            self.followed = cost
        return cost

    def asked(self) -> CostModel | None:
        """After all batches, for somebody who will ask again."""
        self._asked = TOGETHER
        return self.cost()

    def add(self, timing: Timing) -> None:
        """A batch is over."""
        self._due.append(timing)
        self._asked -= 1
        # where there are several lengths, batches are chosen by what they cost
        several = self.followed is not None and len(self.followed.fits) > 1
        if self._asked >= 0 or several or len(self._due) >= TOGETHER:
            self.cost()
