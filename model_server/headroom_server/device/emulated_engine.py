"""An engine that sleeps instead of computing: t0 + a * b + c * b * L seconds per batch.

b is the batch size and L its padded length. It replaces a GPU on a laptop and reports `emulated`
everywhere. Responses can still be checked: each item is a row of numbers and its output is their
exact sum.
"""

from __future__ import annotations

import math
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence

from headroom_server.engine import DeviceLostError, Staged, Work
from headroom_server.signature import Signature
from headroom_server.tensors import DYNAMIC, TensorSpec
from headroom_server.typed_arrays import Numbers

OVERSLEPT_CAP_S = 0.001
"""Cap on the compensation for one late wake-up, which must not make the next batches free."""

SCALE = 64
"""Powers of two by which a row is scaled if its sum would overflow."""


class EmulatedEngine:
    """Sleeps as long as the emulated device would compute."""

    name = "emulated"
    device = "emulated"
    emulated = True
    compiles = False

    def __init__(
        self,
        *,
        fixed_cost_s: float,
        per_item_cost_s: float,
        load_s: float,
        input_size: int,
        per_token_cost_s: float = 0.0,
        lengths: Sequence[int] = (),
        slow_after_s: float = math.inf,
        slow_factor: float = 1.0,
        lost_after_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Accept rows of `input_size` numbers, or with `lengths` rows of any length.

        From `slow_after_s` after loading, a batch takes `slow_factor` times as long, as on a hot or
        shared device. From `lost_after_s` after loading, the device is lost.
        """
        self._fixed_cost_s = fixed_cost_s
        self._per_item_cost_s = per_item_cost_s
        self._per_token_cost_s = per_token_cost_s
        self._load_s = load_s
        self._clock = clock
        self._sleep = sleep
        self._slow_after_s = slow_after_s
        self._slow_factor = slow_factor
        self._lost_after_s = lost_after_s
        self._loaded_s = clock()
        self._overslept_s = 0.0
        self._row = input_size
        self._signature = Signature(
            inputs=(TensorSpec("x", "FP64", (DYNAMIC if lengths else input_size,)),),
            outputs=(TensorSpec("sum", "FP64"),),
            lengths=tuple(lengths),
        )

    def load(self) -> Signature:
        """Sleep for the configured time."""
        self._sleep(self._load_s)
        self._loaded_s = self._clock()
        return self._signature

    def compile(self) -> str:
        """Do nothing."""
        return "nothing to compile"

    def stage(self, batch: Sequence[Work], length: int, ahead: Staged | None = None) -> Staged:
        """Copy nothing."""
        return Staged(batch, length)

    def execute(self, staged: Staged) -> Sequence[Mapping[str, Numbers]]:
        """Sum every row, and return when t(b, L) has passed since the call.

        Raises:
            DeviceLostError: the time of the emulated loss has come.
        """
        now_s = self._clock()
        if now_s - self._loaded_s >= self._lost_after_s:
            raise DeviceLostError("the emulated device was lost as configured")
        items = sum([work.items for work in staged.batch])
        due_s = now_s + self._cost_s(items, staged.length, now_s)
        outputs = [{"sum": self._sums(work)} for work in staged.batch]
        self._spend_until(due_s)
        return outputs

    def finish(
        self, staged: Staged, result: Sequence[Mapping[str, Numbers]]
    ) -> Sequence[Mapping[str, Numbers]]:
        """Return the result unchanged."""
        return result

    def unload(self) -> None:
        """Release nothing."""

    def _cost_s(self, items: int, length: int, now_s: float) -> float:
        per_item_s = self._per_item_cost_s + self._per_token_cost_s * length
        cost_s = self._fixed_cost_s + per_item_s * items
        slow = now_s - self._loaded_s >= self._slow_after_s
        return cost_s * self._slow_factor if slow else cost_s

    def _sums(self, work: Work) -> Numbers:
        numbers, row = work.inputs["x"], work.length or self._row
        if work.items == 1:
            return array("d", (_sum(numbers),))
        return array("d", [_sum(numbers[at : at + row]) for at in range(0, len(numbers), row)])

    def _spend_until(self, due_s: float) -> None:
        # A sleep ends about 0.1 ms late: the next one is shortened by that, so that the mean is
        # exact.
        due_s -= self._overslept_s
        self._sleep(max(0.0, due_s - self._clock()))
        self._overslept_s = min(max(0.0, self._clock() - due_s), OVERSLEPT_CAP_S)


def _sum(row: Numbers) -> float:
    """Return the exact sum, rounded once; on overflow the largest number of its sign."""
    try:
        return math.fsum(row)
    except OverflowError:
        scaled = math.fsum(math.ldexp(number, -SCALE) for number in row)
        if abs(scaled) <= math.ldexp(sys.float_info.max, -SCALE):
            return math.ldexp(scaled, SCALE)
        return math.copysign(sys.float_info.max, scaled)
