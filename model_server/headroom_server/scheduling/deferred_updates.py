"""Updates the cost model: per batch if admission reads it, else several at once. Pure.

Admission reads the model for every request with a deadline; then it is updated as each batch ends.
Otherwise the current model is not needed, and an update costs half as much CPU as serving a
request: it is updated every `UPDATE_BATCHES` batches, or when it is read. The resulting model is
the same.
"""

from __future__ import annotations

from headroom_server.scheduling.cost_model import CostModel, Timing

UPDATE_BATCHES = 32
"""Batches per deferred update, and how many are applied at once after a read by admission."""


class DeferredUpdates:
    """One model's cost, and the batches not yet applied to it."""

    def __init__(self) -> None:
        self.applied: CostModel | None = None
        """The model after some of the batches; None until warm-up has timed any."""
        self._due: list[Timing] = []
        self._immediate = 0

    def begin(self, seed: CostModel) -> None:
        """Start from the warm-up times."""
        self.applied = seed
        self._due.clear()

    def current(self) -> CostModel | None:
        """Apply all batches and return the model."""
        current = self.applied
        if current is not None and self._due:
            for timing in self._due:
                current = current.observe(*timing)
            self._due.clear()
            self.applied = current
        return current

    def current_for_admission(self) -> CostModel | None:
        """Return the current model to a reader that will read it again soon."""
        self._immediate = UPDATE_BATCHES
        return self.current()

    def add(self, timing: Timing) -> None:
        """Add a batch."""
        self._due.append(timing)
        self._immediate -= 1
        # with several lengths, batches are selected by their costs
        several = self.applied is not None and len(self.applied.fits) > 1
        if self._immediate >= 0 or several or len(self._due) >= UPDATE_BATCHES:
            self.current()
