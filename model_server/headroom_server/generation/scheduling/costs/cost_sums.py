"""The least squares of an iteration's time: sums over iterations, and their solution. Pure.

Terms that the traffic does not tell apart share the time (a ridge); a negative one is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

RIDGE = 1e-3
TERMS = 5


class CostSums:
    """Sums that identify the cost: X'X by rows of the upper triangle, and X'y."""

    __slots__ = ("xx", "xy")

    def __init__(self) -> None:
        self.xx = [0.0] * (TERMS * (TERMS + 1) // 2)
        self.xy = [0.0] * TERMS

    def add(self, row: Sequence[float], seconds: float, weight: float, keep: float) -> None:
        """Add an iteration, after multiplying the weight of all earlier ones by `keep`."""
        xx, xy, at = self.xx, self.xy, 0
        for i, x in enumerate(row):
            weighted = x * weight
            xy[i] = keep * xy[i] + weighted * seconds
            for other in row[i:]:
                xx[at] = keep * xx[at] + weighted * other
                at += 1

    def solve(self) -> tuple[float, ...]:
        """Return the coefficients, all at least 0."""
        matrix = [[0.0] * TERMS for _ in range(TERMS)]
        at = 0
        for i in range(TERMS):
            for j in range(i, TERMS):
                matrix[i][j] = matrix[j][i] = self.xx[at]
                at += 1
        kept = [i for i in range(TERMS) if matrix[i][i] > 0.0]
        while kept:
            found = _ridge(matrix, self.xy, kept)
            worst = min(range(len(kept)), key=found.__getitem__)
            if found[worst] >= 0.0:
                solution = [0.0] * TERMS
                for i, value in zip(kept, found, strict=True):
                    solution[i] = value
                return tuple(solution)
            del kept[worst]
        return (0.0,) * TERMS


def _ridge(matrix: list[list[float]], right: list[float], kept: list[int]) -> list[float]:
    """Solve in units in which every term has mean square 1, and return scaled coefficients."""
    scale = [math.sqrt(matrix[i][i] / matrix[0][0]) if matrix[0][0] else 1.0 for i in kept]
    total = matrix[0][0] or 1.0
    rows = [
        [matrix[i][j] / (si * sj * total) + (RIDGE if i == j else 0.0)
         for j, sj in zip(kept, scale, strict=True)] + [right[i] / (si * total)]
        for i, si in zip(kept, scale, strict=True)
    ]  # fmt: skip
    size = len(rows)
    for at in range(size):  # positive definite: no pivoting
        pivot = rows[at]
        for lower in rows[at + 1 :]:
            factor = lower[at] / pivot[at]
            for column in range(at, size + 1):
                lower[column] -= factor * pivot[column]
    found = [0.0] * size
    for at in range(size - 1, -1, -1):
        rest = sum(rows[at][column] * found[column] for column in range(at + 1, size))
        found[at] = (rows[at][size] - rest) / rows[at][at]
    return [value / s for value, s in zip(found, scale, strict=True)]
