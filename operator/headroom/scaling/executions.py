"""What one replica executed within one interval between two scrapes."""

from __future__ import annotations

from typing import NamedTuple


class Executions(NamedTuple):
    """Means over an interval; the mean of an affine cost is the cost of the mean."""

    replica: str
    batches: float
    size: float
    """Requests per batch, on average."""
    mean_s: float
    """Seconds per batch, on average."""
