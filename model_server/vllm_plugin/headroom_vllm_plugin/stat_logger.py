"""The plugin that vLLM loads (entry point `vllm.stat_logger_plugins`).

It needs `--enable-logging-iteration-details`; without it vLLM does not say what an iteration
computed, and no counter is exposed.
"""

from __future__ import annotations

import logging
from typing import Any

from prometheus_client import Counter, Gauge
from vllm.v1.metrics.loggers import StatLoggerBase

from headroom_vllm_plugin.cost_sums import CostCounters

_log = logging.getLogger(__name__)
_LABELS = ("model_name", "engine")
_XX = Counter(
    "headroom_iteration_cost_xx_total",
    "Sum over iterations of the product of two features.",
    (*_LABELS, "row", "column"),
)
_XY = Counter(
    "headroom_iteration_cost_xy_total",
    "Sum over iterations of a feature times the seconds.",
    (*_LABELS, "row"),
)
_BUDGET = Gauge("headroom_max_iteration_tokens", "Maximum tokens computed per iteration.", _LABELS)


class IterationCost(StatLoggerBase):
    """Adds each iteration to the sums."""

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        """Expose the counters, where vLLM describes its iterations."""
        names = vllm_config.model_config.served_model_name
        name = names if isinstance(names, str) else names[0]
        self._labels = (name, str(engine_index))
        self._cache = vllm_config.cache_config
        budget = vllm_config.scheduler_config.max_num_batched_tokens
        _BUDGET.labels(*self._labels).set(budget)
        self._counters: CostCounters | None = None
        if vllm_config.observability_config.enable_logging_iteration_details:
            self._counters = CostCounters(_XX, _XY, self._labels)
        else:
            _log.warning("the cost of iterations needs --enable-logging-iteration-details")

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        """Count the iteration that these statistics describe."""
        details = None if scheduler_stats is None else scheduler_stats.iteration_details
        if details is None or self._counters is None:
            return
        blocks = self._cache.num_gpu_blocks or 0
        capacity = blocks * (self._cache.block_size or 0)
        self._counters.add(details, scheduler_stats.kv_cache_usage * capacity)

    def log_engine_initialized(self) -> None:
        """Say nothing: vLLM logs it."""
