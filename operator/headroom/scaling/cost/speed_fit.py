"""One line for all replicas, and a factor on it for each that differs beyond chance. Pure.

Each replica has a factor on one line (a fixed effect), that of the usual replica, and the slope
depends only on how its own batches differ in size. Factors and line are fitted in turn, once a
tick, by alternating least squares.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median_low

from headroom.scaling.cost.change_detection import RATIO, Recent, detect_change
from headroom.scaling.cost.line_fit import Sums, line
from headroom.scaling.cost.outliers import FEWEST_FAR, is_far

LEAST_DIFFERENCE, LEAST_DEVIATIONS = 0.05, 4.0
"""A replica differs if it does by this share, and by this many standard deviations of its mean."""
FEWEST_OF_ONE = 100.0
"""Times cv squared: the mean of fewer executions of one replica is too skewed to detect a change.
One lognormal execution of cv 1 in ten thousand takes 16 times as long as usual."""
LARGEST_FACTOR = 1e6
"""And its inverse: pages may claim more, but the sums of all replicas would overflow."""


def changed_replicas(
    recent: Mapping[str, Recent], means: Mapping[str, float], cv: float
) -> dict[str, float]:
    """Return the replicas that have become slower or faster, and by which factor.

    Compared with the other replicas: a change of all replicas is no change of one.
    """
    fewest = FEWEST_OF_ONE * cv * cv
    ratios = {
        one: took_s / (means[one] * usual_s)
        for one, (_, took_s, usual_s) in recent.items()
        if usual_s > 0
    }
    if len(ratios) < 2:
        return {}
    usual = [ratio for one, ratio in ratios.items() if recent[one][0] >= fewest]
    common, changed = median_low(usual or ratios.values()), dict[str, float]()
    least, most = common / RATIO, common * RATIO
    if least <= min(ratios.values()) and max(ratios.values()) <= most:
        return changed
    for one, ratio in ratios.items():
        if least <= ratio <= most:
            continue
        count, took_s, usual_s = recent[one]
        found = None
        if count >= fewest and len(usual) > 1:
            found = detect_change((count, took_s, common * means[one] * usual_s), cv)
        if found is None and count >= FEWEST_FAR and is_far(ratio / common, count, cv):
            found = ratio / common
        if found is not None:
            changed[one] = found
    return changed


def rescaled(sums: Sums, ratio: float, kept: float) -> Sums:
    """Return a share of the sums, as if every execution had taken `ratio` times as long."""
    weight, sizes, squared, seconds, products = (kept * total for total in sums)
    return weight, sizes, squared, ratio * seconds, ratio * products


def mean_factors(sums: Mapping[str, Sums], last: Mapping[str, float]) -> dict[str, float]:
    """Return the time of each replica over the line that the last factors give."""
    fixed_s, per_item_s = line(_together(sums, last))
    fixed_squared, cross, per_item_squared = fixed_s**2, 2 * fixed_s * per_item_s, per_item_s**2
    return {
        replica: (fixed_s * seconds + per_item_s * products)
        / (fixed_squared * weight + cross * sizes + per_item_squared * squared)
        for replica, (weight, sizes, squared, seconds, products) in sums.items()
    }


def factors_beyond_chance(
    means: Mapping[str, float], sums: Mapping[str, Sums], cv: float
) -> dict[str, float]:
    """Return the factors of the replicas that differ, 1 for the others; empty if none differs.

    Worked: cv 1 and 400 executions, a mean known to 0.05: a replica between 0.8 and 1.2 does not
    differ.
    """
    chance = (LEAST_DEVIATIONS * cv) ** 2
    differing = {
        replica: min(LARGEST_FACTOR, max(1.0 / LARGEST_FACTOR, mean))
        for replica, mean in means.items()
        if abs(mean - 1.0) > LEAST_DIFFERENCE and (mean - 1.0) ** 2 * sums[replica][0] > chance
    }
    if not differing:
        return {}
    factors = {replica: differing.get(replica, 1.0) for replica in means}
    usual = median_low(factors.values())
    return {replica: factor / usual for replica, factor in factors.items()}


def _together(sums: Mapping[str, Sums], factors: Mapping[str, float]) -> Sums:
    """Add up all replicas, each as if it had the speed of the usual one."""
    if not factors:
        return tuple(map(sum, zip(*sums.values(), strict=True)))
    weight = sizes = squared = seconds = products = 0.0
    for replica, (one, size, square, took_s, product) in sums.items():
        factor = factors.get(replica, 1.0)
        weight, sizes, squared = weight + one, sizes + size, squared + square
        seconds, products = seconds + took_s / factor, products + product / factor
    return weight, sizes, squared, seconds, products
