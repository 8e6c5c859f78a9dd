"""Result of a scrape of the replicas: a page of vLLM, never the plant's ground truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import CostSums, GenerationSample, TokenCounts
from headroom.simulator.generation.compiled.histogram_bounds import (
    END_BOUNDS_S,
    FIRST_BOUNDS_S,
    LENGTH_BOUNDS,
    TOKEN_BOUNDS_S,
)
from headroom.simulator.generation.compiled.layout import (
    END_AT,
    FIRST_AT,
    OUTPUT_AT,
    PROMPT_AT,
    TOKEN_AT,
    Column,
    Row,
)
from headroom.simulator.generation.compiled.state import TokenState
from headroom.simulator.generation.plant import TokenService


def pod_sample(p: TokenState, service: TokenService, uid: str, row: int, now_s: float) -> PodSample:
    """Return the page of the replica in this row; the plant is settled."""
    counters, gauges = p.counters[row], p.rows[row]
    blocks = service.engine.kv_tokens // service.engine.block_tokens
    running = int(gauges[Row.IN_FLIGHT] - gauges[Row.WAITING])
    value = counters[: Column.SUMS].tolist()
    sums: CostSums | None = None
    if service.exact_sums:
        exact = counters[Column.SUMS : FIRST_AT].tolist()
        sums = CostSums(xx=tuple(exact[:15]), xy=tuple(exact[15:]))
    return PodSample(
        pod=uid,
        time_s=now_s,
        arrivals=value[Column.ARRIVALS],
        missed=0.0,
        waiting=int(gauges[Row.WAITING]),
        running=running,
        latency=_latency(counters, END_AT, END_BOUNDS_S),
        slots=1,
        generation=GenerationSample(
            iterations=value[Column.ITERATIONS],
            engine_seconds=value[Column.ENGINE_S],
            computed_prompt_tokens=value[Column.COMPUTED],
            cached_prompt_tokens=value[Column.CACHED],
            generated_tokens=value[Column.GENERATED],
            sequence_steps=value[Column.SEQUENCE_STEPS],
            sequence_seconds=value[Column.SEQUENCE_S],
            preemptions=value[Column.PREEMPTIONS],
            cost_sums=sums,
            waiting_tokens=float(gauges[Row.WAITING_TOKENS]),
            context_tokens=float(gauges[Row.CONTEXTS]),
            kv_used_share=float(gauges[Row.USED]) / blocks,
            limits=service.engine.limits,
            prompt_lengths=_lengths(counters, PROMPT_AT, value[Column.PROMPT_SUM]),
            output_lengths=_lengths(counters, OUTPUT_AT, value[Column.OUTPUT_SUM]),
            first_token=_latency(counters, FIRST_AT, FIRST_BOUNDS_S),
            output_token=_latency(counters, TOKEN_AT, TOKEN_BOUNDS_S),
        ),
    )


def _latency(counters: NDArray[np.float64], start: int, bounds_s: Sequence[float]) -> LatencyCounts:
    counts = np.cumsum(counters[start : start + len(bounds_s)]).tolist()
    return LatencyCounts(bounds_s=tuple(bounds_s), counts=tuple(counts))


def _lengths(counters: NDArray[np.float64], start: int, total: float) -> TokenCounts:
    counts = np.cumsum(counters[start : start + len(LENGTH_BOUNDS)]).tolist()
    return TokenCounts(bounds=LENGTH_BOUNDS, counts=tuple(counts), total=total)


def fullest(p: TokenState, service: TokenService, rows: Sequence[int]) -> float:
    """Return the largest share of memory in use over these rows; 0 without any."""
    blocks = service.engine.kv_tokens // service.engine.block_tokens
    return max((float(p.rows[row, Row.USED]) / blocks for row in rows), default=0.0)
