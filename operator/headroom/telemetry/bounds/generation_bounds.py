"""Rejects pages with values that no engine can have generated or measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headroom.profiles.generation import COUNTED, CostMetrics, GenerationMetrics
from headroom.telemetry.bounds.physical_bounds import MOST_BATCH, MOST_COUNTED
from headroom.telemetry.errors import InvalidMetric

MOST_TOKENS = 2.0**40
"""Most tokens of one engine at once: the largest GPU has memory for about 2^24 tokens of a small
model."""
MOST_SQUARED = 2.0**120
"""Largest value of a sum of products: 2^40 tokens squared, for 2^40 iterations. Its square is still
a float."""
ROUNDING = 1e-6
"""Sums of as many numbers as there are iterations are rounded."""
_SHARE = 1.0 + 1e-3
_MOST = {
    **dict.fromkeys(COUNTED, MOST_COUNTED),
    "idle_seconds": MOST_COUNTED,
    "waiting_tokens": MOST_TOKENS,
    "context_tokens": MOST_TOKENS,
    "kv_share": _SHARE,
    "kv_used": MOST_TOKENS,
    "kv_all": MOST_TOKENS,
    "kv_block_tokens": MOST_BATCH,
    "sequences": MOST_BATCH,
    "iteration_tokens": MOST_TOKENS,
}


def check_generation(metrics: GenerationMetrics, found: Mapping[str, float | None]) -> None:
    """Check the quantities of one page; raise InvalidMetric."""
    for name, value in found.items():
        if value is not None and not abs(value) <= _MOST[name]:  # some are differences
            raise InvalidMetric(_name(metrics, name), f"must be at most {_MOST[name]:g}", value)
    used, whole = found.get("kv_used"), found.get("kv_all")
    if used is not None and whole is not None and used > whole * _SHARE:
        raise InvalidMetric(_name(metrics, "kv_used"), f"must be at most {whole:g}", used)


def check_limits(metrics: GenerationMetrics, kv_tokens: float | None) -> None:
    """Check the tokens that fit into memory; raise InvalidMetric."""
    if kv_tokens is not None and not kv_tokens <= MOST_TOKENS:
        name = metrics.kv_info.metric if metrics.kv_info else _name(metrics, "kv_all")
        raise InvalidMetric(name, f"must state at most {MOST_TOKENS:g} tokens", kv_tokens)


def check_cost(metrics: CostMetrics, xx: Sequence[float], xy: Sequence[float]) -> None:
    """Check that sums of products can be such (Cauchy and Schwarz); raise InvalidMetric."""
    for name, sums in ((metrics.xx, xx), (metrics.xy, xy)):
        if max(sums) > MOST_SQUARED:
            raise InvalidMetric(name, f"must be at most {MOST_SQUARED:g}", max(sums))
    size = len(xy)
    squares, place = [], 0
    for row in range(size):
        squares.append(xx[place])
        place += size - row
    place = 0
    for row in range(size):
        for column in range(row, size):
            if xx[place] ** 2 > squares[row] * squares[column] * (1.0 + ROUNDING) + ROUNDING:
                rule = f"must be at most the root of {squares[row]:g} x {squares[column]:g}"
                raise InvalidMetric(metrics.xx, rule, xx[place])
            place += 1


def _name(metrics: GenerationMetrics, quantity: str) -> str:
    named = metrics.quantities[quantity]
    return named[0].name if named else quantity
