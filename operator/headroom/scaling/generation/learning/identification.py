"""Known parts of an engine's cost, and the parts that its servers do not show."""

from __future__ import annotations

from headroom.scaling.generation.learning.iteration_cost import intervals
from headroom.scaling.generation.learning.learned import LEAST_FIT_ITERATIONS, GenerationState
from headroom.scaling.values.token_decision import Identification
from headroom.scaling.values.tokens import IterationCost

VARIED = 1.15
"""Slowest over fastest mean iteration that tells the parts of the cost apart."""
FEW = f"fewer than {LEAST_FIT_ITERATIONS:.0f} iterations have been seen"
SILENT = (
    "the servers report neither engine seconds nor the time between tokens with iterations, or "
    "none have passed"
)


def identify(state: GenerationState, prior: IterationCost | None) -> Identification:
    """Return whether the inputs are known, the cost's source, and the missing values as text."""
    missing = []
    if state.lengths.shape is None:
        missing.append("lengths of prompts and answers: too few requests have ended")
    learned = state.ledger.iterations >= LEAST_FIT_ITERATIONS
    if not learned:
        missing.append(f"time per iteration: {FEW if state.source else SILENT}")
    elif state.ledger.spread < VARIED and state.source != intervals.EXACT_SUMS:
        missing.append("fixed and per-token cost separately: the load has hardly varied")
    if not state.seen_load.is_enough:
        missing.append(
            f"cost at load: known within {100 * state.error:.0f}%, which are added, because little "
            f"load was seen (at most {100 * state.seen_load.share:.0f}% of a replica's maximum)"
        )
    if state.limits.kv_tokens is None:
        missing.append("KV memory: the servers do not report its size")
    source = state.source if learned else "a stated cost" if prior is not None else ""
    return Identification(
        known=state.inputs is not None,
        source=source,
        missing=tuple(missing),
    )
