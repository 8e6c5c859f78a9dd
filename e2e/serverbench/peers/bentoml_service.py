"""BentoML: adaptive batching with at most 8 items, its own default bounds on latency."""

from __future__ import annotations

import bentoml
from sleeping import MAX_BATCH_SIZE, Device


@bentoml.service(workers=1, traffic={"timeout": 60}, logging={"access": {"enabled": False}})
class Model:
    """Rows in, sums out."""

    def __init__(self) -> None:
        self._sleeper = Device()

    @bentoml.api(  # type: ignore[untyped-decorator]
        batchable=True, max_batch_size=MAX_BATCH_SIZE
    )
    def predict(self, x: list[list[float]]) -> list[float]:
        """One batch."""
        self._sleeper.spend(len(x))
        return [float(sum(row)) for row in x]
