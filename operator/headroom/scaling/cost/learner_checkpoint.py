"""The checkpoint of the cost learner: the sums of each bin of batch sizes, and the variation."""

from __future__ import annotations

from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.cost.execution_variation import ExecutionVariation
from headroom.scaling.cost.interval_pairs import MOST_CV
from headroom.scaling.cost.line_fit import SUMS, Sums
from headroom.scaling.values.checkpoint_numbers import (
    MOST_BATCH,
    MOST_COUNTED,
    MOST_SECONDS,
    Checkpoint,
    numbers_of,
    short,
)

MOST_BIN = 64


def to_checkpoint(learner: CostLearner) -> dict[str, object]:
    """Return the learner's checkpoint as JSON values: its sums of the cost and of the variation."""
    return {
        "cost": [
            [number, *(short(total) for total in sums)]
            for number, sums in sorted(learner.bins.items())
        ],
        "variation": [*(short(total) for total in learner.variation.uncontradicted)],
    }


def from_checkpoint(checkpoint: Checkpoint) -> CostLearner:
    """Return the learner that `to_checkpoint` saved; raise ValueError with rule and value."""
    return CostLearner(bins=_bins(checkpoint), variation=_variation(checkpoint))


def _bins(checkpoint: Checkpoint) -> dict[int, Sums]:
    """Read the sums of each bin of batch sizes: [bin, sums...]."""
    rows = checkpoint.get("cost")
    if not isinstance(rows, list):
        raise ValueError(f"checkpoint cost must be a list of lists; got {rows!r}")
    bins: dict[int, Sums] = {}
    for row in rows:
        numbers = numbers_of({"cost": row}, "cost")
        if len(numbers) != 1 + SUMS or not numbers[0].is_integer():
            raise ValueError(f"checkpoint cost must hold a bin and {SUMS} sums; got {row!r}")
        if 0.0 in numbers[1:]:
            raise ValueError(f"checkpoint cost must hold sums > 0; got {row!r}")
        if not _possible(int(numbers[0]), tuple(numbers[1:])):
            rule = f"sums of batches <= {MOST_BATCH:g} requests and {MOST_SECONDS:g} s"
            raise ValueError(f"checkpoint cost must hold {rule}; got {row!r}")
        bins[int(numbers[0])] = tuple(numbers[1:])
    return bins


def _possible(number: int, sums: Sums) -> bool:
    """Return whether batches can have these sums; squares of larger ones would overflow."""
    weight, sizes, sizes_squared, seconds, products = sums
    return (
        number <= MOST_BIN
        and weight <= MOST_COUNTED
        and sizes <= MOST_BATCH * weight
        and sizes_squared <= MOST_BATCH * sizes
        and seconds <= MOST_SECONDS * weight
        and products <= MOST_SECONDS * sizes
    )


def _variation(checkpoint: Checkpoint) -> ExecutionVariation:
    numbers = numbers_of(checkpoint, "variation")
    if len(numbers) != 2 or (numbers[0] > 0 and numbers[1] == 0):
        rule = "a sum of squares and how many there were"
        raise ValueError(f"checkpoint variation must hold {rule}; got {numbers}")
    if numbers[0] > MOST_CV**2 * numbers[1] or numbers[1] > MOST_COUNTED:
        rule = f"squares of at most {MOST_CV:g} each"
        raise ValueError(f"checkpoint variation must hold {rule}; got {numbers}")
    return ExecutionVariation.of(numbers[0], numbers[1])
