"""PURE. The four stages of a batch, in seconds."""

from __future__ import annotations

from typing import NamedTuple


class Stages(NamedTuple):
    """Where the time of a batch went."""

    preprocess_s: float
    """In the model's own code, before."""
    stage_s: float
    """Collecting, padding, beginning to copy."""
    execute_s: float
    postprocess_s: float
    """The model's own code, after, and dealing out the rows."""

    @property
    def total_s(self) -> float:
        """All of them, one after the other."""
        return sum(self)
