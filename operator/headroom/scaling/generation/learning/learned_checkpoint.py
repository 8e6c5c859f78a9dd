"""Converts the learned state of a generating service into the numbers that survive a restart."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.scaling.generation.learning.iteration_cost.experts import SHARES
from headroom.scaling.generation.learning.iteration_cost.ledger import LEAST_ITERATIONS, Ledger
from headroom.scaling.generation.learning.iteration_cost.sums import ITERATIONS, SUMS, total
from headroom.scaling.generation.learning.learned import GenerationState
from headroom.scaling.generation.learning.request_lengths.length_sums import WIDTH
from headroom.scaling.generation.learning.request_lengths.lengths import Lengths
from headroom.scaling.generation.learning.seen_load import SeenLoad
from headroom.scaling.generation.learning.tail_correction import LARGEST, SMALLEST
from headroom.scaling.generation.replica_model.replica import TailFactors
from headroom.scaling.values.checkpoint_numbers import LARGEST_NUMBER

_HEAD = 5
_SAVED = _HEAD + SUMS + WIDTH
_SAVED_AT_MOST = LARGEST_NUMBER / 10


def to_numbers(state: GenerationState) -> list[float]:
    """Return the checkpoint of the learned state as numbers; empty if nothing was learned.

    Sums that grow too large are scaled down together, which leaves what they mean as it is.
    """
    if not state.ledger.bins:
        return []
    sums = total(state.ledger.bins.values())
    sums = sums * min(1.0, _SAVED_AT_MOST / float(sums.max()))
    return [
        state.factors.first_token,
        state.factors.output_token,
        state.seen_load.share,
        state.ledger.iterations,
        state.ledger.share,
        *sums.tolist(),
        *state.lengths.slow,
    ]


def from_numbers(numbers: Sequence[float]) -> GenerationState:
    """Return the state that `to_numbers` saved; of another length, one without history.

    Raise ValueError for numbers that cannot be.
    """
    if len(numbers) != _SAVED:  # empty, or of an older version: the rest is kept
        return GenerationState()
    first, output, load, iterations, share = numbers[:_HEAD]
    if not (SMALLEST <= first <= LARGEST and SMALLEST <= output <= LARGEST and load <= 1.0):
        rule = f"factors in {SMALLEST:g}..{LARGEST:g} and a load <= 1"
        raise ValueError(f"checkpoint generation must hold {rule}; got {list(numbers[:3])}")
    if share not in (0.0, *(float(f"{one:.9g}") for one in SHARES)):
        rule = f"a share of experts out of {SHARES}"
        raise ValueError(f"checkpoint generation must hold {rule}; got {share}")
    sums, lengths = tuple(numbers[_HEAD : _HEAD + SUMS]), tuple(numbers[_HEAD + SUMS :])
    if (
        max(sums) > LARGEST_NUMBER
        or max(lengths) > LARGEST_NUMBER
        or sums[ITERATIONS] < LEAST_ITERATIONS
    ):
        raise ValueError(f"checkpoint generation must hold sums <= {LARGEST_NUMBER:g}")
    return GenerationState(
        ledger=Ledger(
            bins={(0, 0): sums},
            iterations=iterations,
            share=share,
        ),
        lengths=Lengths(slow=lengths),
        factors=TailFactors(first_token=first, output_token=output),
        seen_load=SeenLoad(share=load),
    )
