"""A least-squares line through (batch size, seconds), kept as sums that can be added and faded."""

from __future__ import annotations

Sums = tuple[float, ...]
"""Weighted by batches: 1, sizes, sizes squared, seconds, products."""
SUMS = 5
NOTHING: Sums = (0.0,) * SUMS


def plus(sums: Sums, batches: float, size: float, mean_s: float) -> Sums:
    """Return the sums with this many batches of this mean added."""
    weight, sizes, sizes_squared, seconds, products = sums
    return (
        weight + batches,
        sizes + batches * size,
        sizes_squared + batches * size * size,
        seconds + batches * mean_s,
        products + batches * size * mean_s,
    )


def line(sums: Sums) -> tuple[float, float]:
    """Return fixed and per-item seconds; the weight must be above 0.

    A line with a negative part is replaced by the nearest one without: through the origin, or flat.
    """
    weight, sizes, sizes_squared, seconds, products = sums
    spread = sizes_squared * weight - sizes**2
    if spread <= 1e-9 * weight**2:  # one size only: of one request each
        return seconds / weight, 0.0
    per_item_s = (products * weight - sizes * seconds) / spread
    fixed_s = (seconds - per_item_s * sizes) / weight
    if fixed_s < 0:
        return 0.0, products / sizes_squared
    if per_item_s < 0:
        return seconds / weight, 0.0
    return fixed_s, per_item_s
