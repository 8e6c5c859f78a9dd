"""How far a change of lengths is beyond chance, and how high a step is that has just begun."""

from __future__ import annotations

QUICK_S, FAST_S, SLOW_S = 12.0, 60.0, 900.0
"""Over how long each of three sums of lengths fades."""
MOST_AHEAD = 2.0
"""A step is taken for at most so many times as high as the quick sums show yet."""


def beyond_chance(difference: float, chance: float) -> float:
    """Return the share of a difference that counts: none within chance, nearly all far beyond it.

    Shrinkage after James and Stein (1961). A difference that counted whole as soon as it exceeded
    chance made capacities jump by a tenth, and replicas come and go with it.
    """
    return max(0.0, 1.0 - (chance / difference) ** 2) if difference else 0.0


def ahead(quick: float, fast: float) -> float:
    """Return how many times as high a step is as the quick sums show; both show it in part.

    T after a step they show 1 - e^(-T / 12 s) and 1 - e^(-T / 60 s) of it: with x = e^(-T / 60 s)
    their ratio is (1 - x^5) / (1 - x), from 5 at the step to 1 long after it. Worked: 10 s after
    prompts have doubled the quick ones are 1.57 and the fast ones 1.15 times as long, 3.7 times the
    difference: so x is 0.85, and 0.57 are 57 % of the step.
    """
    if fast * quick <= 0.0 or abs(quick) <= abs(fast):
        return 1.0
    ratio, power = quick / fast, FAST_S / QUICK_S
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if 1.0 - middle**power < ratio * (1.0 - middle):
            low = middle
        else:
            high = middle
    shown: float = 1.0 - high**power
    return min(MOST_AHEAD, 1.0 / max(shown, _LEAST_SHARE))


_HALVINGS = 12
_LEAST_SHARE = 1e-3
