"""Predicts the peak of memory for keys and values: whether a sequence may start. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState

MEMORY_SHARE = 0.9
"""Share of the blocks that the expected peak may use: beyond it, preemptions multiply."""


def memory_admits(state: SchedulerState, sequence: LiveSequence, new_blocks: int) -> bool:
    """Return whether the expected peak leaves room, if the sequence starts now."""
    pool, size = state.memory.pool, state.memory.block_tokens
    if new_blocks > pool.available:
        return False
    if not state.running:
        return True
    to_come = (state.running + 1) * (state.lengths.expected() / size + 1.0)
    most = MEMORY_SHARE * pool.total
    if pool.used + new_blocks + to_come <= most:
        return True  # without the exact peak, which takes long to compute
    running = (*state.prefilling, *state.decoding.values())
    present = sum(len(one.blocks) for one in running)
    pairs = [(size * len(one.blocks), state.expected_left(one)) for one in running]
    pairs.append((size * new_blocks, state.expected_left(sequence)))
    shared = present - pool.used
    return peak_tokens(pairs) / size - shared <= most


def peak_tokens(sequences: Iterable[tuple[float, float]]) -> float:
    """Return the most tokens that sequences, given as (present, still to come), will need at once.

    When the i-th longest-lasting one ends, it and all that last longer have grown by what it had
    still to come (Gong et al., "Past-Future Scheduler", ASPLOS 2025).
    """
    held, most = 0.0, 0.0
    ordered = sorted(sequences, key=lambda pair: -pair[1])
    for alive, (present, to_come) in enumerate(ordered, 1):
        held += present
        most = max(most, held + alive * to_come)
    return most
