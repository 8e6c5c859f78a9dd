"""Learns how many drafted tokens a step accepts, from the texts of the last minute.

Over a quarter of an hour alone, 1.4 accepted tokens that become 0.2 were still taken for 0.5 ten
minutes later, and the second of two missing replicas was requested after five.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.scaling.generation.learning.request_lengths.length_steps import beyond_chance

LEAST_REQUESTS = 5.0
CV = 0.5
"""Variation between requests: the steps of one accept alike, so requests count, not steps."""
DEVIATIONS = 3.0


def accepted(slow: Sequence[float], fast: Sequence[float], fast_requests: float) -> float:
    """Return the accepted tokens per step, from the steps and accepted tokens of two faded sums.

    The fast ones count by how far they differ from the slow ones beyond chance.
    """
    if slow[0] <= 0.0:
        return 0.0
    found = slow[1] / slow[0]
    if fast_requests < LEAST_REQUESTS or fast[0] <= 0.0:
        return found
    moved = fast[1] / fast[0] - found
    return found + moved * beyond_chance(moved, DEVIATIONS * CV * found / math.sqrt(fast_requests))
