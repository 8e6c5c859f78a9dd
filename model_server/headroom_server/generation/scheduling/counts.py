"""The counts of a scheduler, from one instant. Pure."""

from __future__ import annotations

from headroom_server.generation.ports import EngineStatistics
from headroom_server.generation.scheduling.state import SchedulerState


def statistics_of(state: SchedulerState) -> EngineStatistics:
    """Return totals since the start, and the present state."""
    pool = state.memory.pool
    waiting = sum(line.tokens for line in state.lines)
    return EngineStatistics(
        **state.totals,
        cost_xx=tuple(state.sums.xx),
        cost_xy=tuple(state.sums.xy),
        used_blocks=pool.used,
        cached_blocks=pool.cached,
        free_blocks=pool.available - pool.cached,
        waiting_requests=sum(line.count for line in state.lines),
        waiting_batch_class=state.batch.count,
        waiting_tokens=waiting + sum(one.remaining for one in state.prefilling),
        context_tokens=state.context_tokens,
    )
