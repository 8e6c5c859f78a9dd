"""A device that spends calibrated time instead of computing: t(b) = fixed + per_item * b seconds.

It lets a laptop stand for a GPU, and says `emulated` wherever it reports. Answers are still
checkable: each item is a row of numbers and its output is their exact sum.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Mapping, Sequence

from headroom_server.engine import Work
from headroom_server.tensors import Numbers, Signature, TensorSpec

OVERSLEPT_CAP_S = 0.001
"""One late wake-up of a busy machine must not make the next batches free."""


class EmulatedEngine:
    """Sleeps as long as the device it stands for would compute."""

    name = "emulated"
    device = "emulated"
    emulated = True

    def __init__(
        self,
        *,
        fixed_cost_s: float,
        per_item_cost_s: float,
        load_s: float,
        input_size: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._fixed_cost_s = fixed_cost_s
        self._per_item_cost_s = per_item_cost_s
        self._load_s = load_s
        self._clock = clock
        self._sleep = sleep
        self._overslept_s = 0.0
        self._row = input_size
        self._signature = Signature(
            inputs=(TensorSpec("x", "FP64", (input_size,)),),
            outputs=(TensorSpec("sum", "FP64"),),
        )

    def load(self) -> Signature:
        """Take the configured time."""
        self._sleep(self._load_s)
        return self._signature

    def execute(self, batch: Sequence[Work]) -> Sequence[Mapping[str, Numbers]]:
        """Sum every row, and answer when t(b) has passed since the call."""
        due_s = self._clock() + self._cost_s(sum(work.items for work in batch))
        outputs = [{"sum": self._sums(work)} for work in batch]
        self._spend_until(due_s)
        return outputs

    def unload(self) -> None:
        """Nothing was taken."""

    def _cost_s(self, items: int) -> float:
        return self._fixed_cost_s + self._per_item_cost_s * items

    def _sums(self, work: Work) -> Numbers:
        numbers, row = work.inputs["x"], self._row
        return array("d", [_sum(numbers[at : at + row]) for at in range(0, len(numbers), row)])

    def _spend_until(self, due_s: float) -> None:
        # A sleep ends late by some 0.1 ms: that is taken off the next one, so that the mean is
        # exact.
        due_s -= self._overslept_s
        self._sleep(max(0.0, due_s - self._clock()))
        self._overslept_s = min(max(0.0, self._clock() - due_s), OVERSLEPT_CAP_S)


def _sum(row: Numbers) -> float:
    try:
        return math.fsum(row)
    except OverflowError:
        return math.inf
